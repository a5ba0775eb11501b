"""What an operator runs beside the service: each tool is imported by its verb, when it is called."""
