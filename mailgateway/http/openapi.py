"""The served description of the API (OpenAPI 3.0), made from the route table alone."""

import re
from typing import Any

import attrs
from attrs import AttrsInstance

from mailgateway import __version__
from mailgateway.contract import API_VERSION
from mailgateway.http.problems import STATUS
from mailgateway.http.routes import Route
from mailgateway.settings import Role
from mailgateway.shapes import members, schema

GENERAL_CODES = (
    "invalid",
    "malformed",
    "timeout",
    "too_large",
    "too_many_waiting",
    "misdirected",
    "forbidden_origin",
    "unauthorized",
    "incompatible",
    "internal",
    "store_unavailable",
)
"""What every route may answer with."""

PROBLEM = {
    "type": "object",
    "required": ["error", "message"],
    "properties": {
        "error": {"type": "string", "enum": sorted(STATUS)},
        "message": {"type": "string", "description": "What happened, and what to do."},
    },
}


def describe(routes: tuple[Route, ...]) -> dict[str, Any]:
    """Describe every route of the table."""
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.0.3",
        "info": {
            "title": "mailgateway",
            "version": __version__,
            "description": f"Version {API_VERSION} of the API; every answer says so in `Mailgateway-Api`.",
        },
        "paths": paths,
        "components": {
            "schemas": {"Problem": PROBLEM},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"key": []}],
    }


def _operation(route: Route) -> dict[str, Any]:
    codes = (*GENERAL_CODES, *route.codes)
    if route.role is Role.PERSON:
        codes += ("person_required",)
    if route.whole_machine:
        codes += ("not_yours",)
    described: dict[str, Any] = {
        "summary": route.summary,
        "operationId": re.sub(r"\W+", "_", route.name.lower()).strip("_"),
        "parameters": _parameters(route),
        "responses": {str(route.status): _success(route), **_problems(codes)},
    }
    if route.open:
        described["security"] = []
    if attrs.fields(route.body):
        content = {"application/json": {"schema": schema(route.body)}}
        described["requestBody"] = {"required": True, "content": content}
    elif route.takes_file:
        binary = {"schema": {"type": "string", "format": "binary"}}
        described["requestBody"] = {"required": True, "content": {"application/octet-stream": binary}}
    return described


def _parameters(route: Route) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"\{(\w+)\}", route.path)
    ]
    found += _fields(route.query, "query")
    if route.headers is not None:
        found += _fields(route.headers, "header")
    return found


def _fields(made: type[AttrsInstance], place: str) -> list[dict[str, Any]]:
    return [
        {
            "name": member.name,
            "in": place,
            "required": member.required,
            "schema": dict(member.kind.schema),
        }
        for member in members(made)
    ]


def _success(route: Route) -> dict[str, Any]:
    if route.content_type != "application/json":
        return {"description": route.summary, "content": {route.content_type: {}}}
    shape = schema(route.reply) if route.reply is not None else {"type": "object"}
    return {"description": route.summary, "content": {"application/json": {"schema": shape}}}


def _problems(codes: tuple[str, ...]) -> dict[str, Any]:
    by_status: dict[int, list[str]] = {}
    for code in codes:
        by_status.setdefault(STATUS[code], []).append(code)
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {
        str(status): {"description": ", ".join(f"`{code}`" for code in found), "content": content}
        for status, found in sorted(by_status.items())
    }
