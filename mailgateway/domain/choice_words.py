# ruff: noqa: RUF001 - the words of many alphabets look alike
"""The words by which ``domain.choice`` reads an answer, by language where a language has its own.

Data alone.  A word is added here and nowhere else; all are compared folded, so case, quotes and width do not
matter, and apostrophes are left out (``don't`` is ``dont``).  What two languages use in opposite senses is
left out of both.
"""

from collections.abc import Mapping

YES: Mapping[str, str] = {
    "en": "yes|y|yep|yeah|yup|yes yes",
    "de": "ja|jawohl|jep|jo|ja ja",
    "fr": "oui|ouais",
    "es, it, ca": "sí|si|sì",
    "pt": "sim",
    "nl": "jazeker",
    "sv, da, nb": "javisst|jepp|jup",
    "fi": "kyllä|joo|juu",
    "pl": "tak",
    "cs, sk": "ano|áno|jasně",
    "hu": "igen",
    "ro, ru, bg, sr": "da",
    "tr": "evet",
    "el": "ναι|ναί",
    "ru": "да",
    "uk": "так",
    "zh": "是|是的|好|好的|可以|对|對|行|要",
    "ja": "はい|ええ|うん|はいお願いします",
    "ko": "네|예|넵|응|그래",
    "ar": "نعم|أجل|ايوه",
    "he": "כן",
    "picture": "👍",
}

NO: Mapping[str, str] = {
    "en, es, it": "no|n|nope|nah|no no",
    "de": "nein|nee|nö",
    "fr": "non",
    "pt": "não|nao",
    "nl": "nee",
    "sv, da": "nej",
    "nb": "nei",
    "fi": "ei",
    "pl, sk": "nie",
    "cs, sl": "ne",
    "hu": "nem",
    "ro": "nu",
    "tr": "hayır|hayir",
    "el": "όχι|οχι",
    "ru": "нет|неа",
    "uk": "ні",
    "zh": "不|不是|不要|不行|不可以|否",
    "ja": "いいえ|いえ|いや",
    "ko": "아니요|아니오|아뇨|아니",
    "ar": "لا|كلا",
    "he": "לא",
    "picture": "👎",
}

OPTION = (
    "option|opt|choice|answer|number|num|nr|variant|alternative|pick|wahl|antwort|nummer|variante|numéro|"
    "numero|choix|réponse|opción|opcion|número|respuesta|opzione|scelta|risposta|opção|opcao|resposta|"
    "optie|keuze|antwoord|alternativ|val|svar|valg|mulighed|vaihtoehto|vastaus|numer|opcja|wybór|"
    "odpowiedź|možnost|moznost|možnosť|volba|číslo|cislo|odpověď|lehetőség|opció|szám|válasz|opțiunea|"
    "optiunea|varianta|numărul|seçenek|secenek|cevap|numara|επιλογή|αριθμός|вариант|номер|ответ|варіант|"
    "відповідь|选项|選項|选择|オプション|選択肢|번호|옵션|선택|خيار|رقم|אפשרות|מספר"
)
"""What may stand in front of a number or letter."""

ARTICLE = "the|die|der|das|la|le|el|il|lo|de|het|den|det"

AFTER_NUMBER = "番でお願いします|番で|番|でお願いします|号|號|번으로|번이요|번요|번"
"""What is written onto a number."""

GREETING = (
    "hi|hello|hey|hiya|dear|good morning|good afternoon|good evening|hallo|moin|servus|grüß gott|liebe|"
    "lieber|guten morgen|guten tag|guten abend|bonjour|bonsoir|salut|coucou|hola|buenos días|buenos dias|"
    "buenas|buenas tardes|ciao|buongiorno|buonasera|salve|olá|ola|oi|bom dia|boa tarde|hoi|dag|"
    "goedemorgen|hej|god morgon|hei|god morgen|goddag|moi|terve|huomenta|cześć|czesc|dzień dobry|ahoj|"
    "dobrý den|čau|dobrý deň|szia|helló|jó napot|bună|buna|bună ziua|merhaba|selam|günaydın|γεια|γειά|"
    "γεια σου|καλημέρα|привет|здравствуйте|добрый день|привіт|добрий день|你好|您好|嗨|こんにちは|"
    "お疲れ様です|안녕하세요|안녕|مرحبا|السلام عليكم|שלום|היי"
)
"""A greeting, with a name behind it or without."""

FILLER = (
    "ok|okay|sure|great|thanks|thank you|thx|well|alright|right|hm|hmm|so|please|definitely|clearly|gut|"
    "prima|danke|vielen dank|also|bitte|klar|merci|bien|alors|daccord|gracias|vale|bueno|por favor|"
    "grazie|allora|per favore|bene|obrigado|obrigada|bom|bedankt|dank je|goed|graag|tack|tak for det|"
    "takk|kiitos|dzięki|proszę|dobrze|díky|prosím|dobře|ďakujem|köszönöm|kérem|mulțumesc|te rog|"
    "teşekkürler|lütfen|ευχαριστώ|παρακαλώ|спасибо|пожалуйста|хорошо|дякую|будь ласка|добре|谢谢|謝謝|请|"
    "ありがとう|ありがとうございます|감사합니다|شكرا|תודה|בבקשה"
)
"""What may stand in front of a choice and says nothing about it."""

TAKE = (
    "i choose|i pick|i take|i select|i go with|i go for|i say|i prefer|i vote for|i want|id go with|"
    "id go for|id say|id pick|id choose|id take|id prefer|ill go with|ill go for|ill take|ill pick|"
    "we take|we go with|well go with|lets go with|lets go for|lets take|lets use|lets do|lets pick|"
    "go with|go for|go ahead with|take|use|choose|select|my choice is|my choice|my answer is|my answer|"
    "my vote is|my vote|my pick is|my pick|ich nehme|ich wähle|ich bin für|nimm|nehmt|nehmen wir|"
    "wir nehmen|wähle|meine wahl|meine antwort|mach|je prends|je choisis|je préfère|prends|prenez|"
    "on prend|va pour|allons y avec|mon choix|elijo|escojo|prefiero|usa|toma|vamos con|mi respuesta|"
    "scelgo|prendo|preferisco|prendi|andiamo con|escolho|prefiro|vamos com|fico com|ik kies|ik neem|"
    "doe maar|neem|kies|jag väljer|jag tar|vi tar|ta|jeg vælger|jeg tager|jeg velger|jeg tar|vælg|velg|"
    "valitsen|otan|wybieram|biorę|volím|vyberám|vyberu|beru|választom|legyen|aleg|seçiyorum|επιλέγω|"
    "διαλέγω|выбираю|беру|возьми|обираю|вибираю|我选|我選|我选择|选|選|اخترت|أختار|אני בוחר|אני בוחרת"
)
"""Words that take what comes next."""

POLITE = (
    "please|pls|plz|please do|thanks|thanks a lot|many thanks|thank you|thank you very much|thx|ty|"
    "cheers|go ahead|do it|do that|go for it|of course|sure|absolutely|definitely|it is|sounds good|"
    "is fine|is good|is ok|is okay|is best|looks good|works for me|it is then|then|for me|bitte|"
    "bitte sehr|danke|danke dir|danke schön|dankeschön|vielen dank|besten dank|gerne|gern|sehr gerne|"
    "natürlich|klar|unbedingt|genau|passt|ist gut|ist ok|ist okay|ist in ordnung|mach das|sil te plaît|"
    "sil te plait|sil vous plaît|sil vous plait|stp|svp|merci|merci beaucoup|bien sûr|volontiers|"
    "avec plaisir|cest bien|por favor|porfa|gracias|muchas gracias|claro|está bien|por supuesto|"
    "per favore|per piacere|grazie|grazie mille|certo|va bene|obrigado|obrigada|está bom|alsjeblieft|"
    "alstublieft|graag|bedankt|dank je|dank je wel|dank u|is goed|prima|tack|tack så mycket|gärna|tak|"
    "mange tak|gerne tak|takk|tusen takk|gjerne|kiitos|ole hyvä|proszę|poproszę|dzięki|dziękuję|prosím|"
    "díky|děkuji|dík|ďakujem|kérem|köszönöm|köszi|te rog|vă rog|mulțumesc|mersi|lütfen|teşekkürler|"
    "teşekkür ederim|παρακαλώ|ευχαριστώ|пожалуйста|спасибо|будь ласка|дякую|谢谢|謝謝|吧|谢谢你|"
    "お願いします|ありがとう|ありがとうございます|부탁합니다|부탁드립니다|감사합니다|من فضلك|شكرا|בבקשה|"
    "תודה"
)
"""What may stand behind a choice and says nothing more about it."""

CLOSING = (
    "best|best regards|kind regards|regards|warm regards|cheers|br|bye|see you|yours|sincerely|"
    "viele grüße|viele gruesse|liebe grüße|lg|vg|mfg|mit freundlichen grüßen|gruß|grüße|schöne grüße|"
    "tschüss|cordialement|bien à vous|à plus|bises|saludos|un saludo|atentamente|saluti|cordiali saluti|"
    "um abraço|abraço|atenciosamente|groet|groeten|groetjes|met vriendelijke groet|mvh|hälsningar|"
    "med vänliga hälsningar|hilsen|venlig hilsen|vennlig hilsen|terveisin|terv|pozdrawiam|pozdrowienia|"
    "s pozdravem|pozdrav|s pozdravom|üdv|üdvözlettel|cu stimă|saygılar|saygılarımla|χαιρετισμούς|"
    "с уважением|з повагою|此致|よろしくお願いします|sent from my iphone|sent from my phone"
)
"""How a mail ends; a name may follow."""

BECAUSE = (
    "because|cause|since|as|but|though|although|however|and please|with the note|note|weil|denn|da|aber|"
    "jedoch|und bitte|mais|car|parce que|parce quil|puisque|pero|porque|ya que|ma|però|perché|perche|mas|"
    "porém|pois|maar|want|omdat|men|fordi|eftersom|för att|mutta|koska|ale|bo|ponieważ|protože|protoze|"
    "lebo|pretože|de|mert|azonban|dar|pentru că|însă|ama|fakat|ancak|çünkü|αλλά|γιατί|επειδή|όμως|но|"
    "потому что|потому|так как|але|бо|тому що|但|但是|不过|因为|因為|でも|ただし|ただ|なぜなら|하지만|"
    "왜냐하면|لكن|لأن|אבל|כי"
)
"""With these a note begins, also without a mark in front."""

NOT = (
    "not|no|nope|never|none|wrong|bad|dont|doesnt|isnt|wont|cant|cannot|cancel|stop|reject|refuse|nicht|"
    "nein|kein|keine|keinesfalls|falsch|niemals|nie|stopp|pas|non|jamais|faux|nunca|incorrecto|falso|mai|"
    "sbagliato|não|nao|errado|niet|nee|nooit|fout|verkeerd|inte|nej|aldrig|fel|ikke|nei|aldri|feil|"
    "forkert|ei|älä|väärin|nigdy|źle|ne|nikdy|špatně|nem|soha|rossz|nu|niciodată|greșit|hayır|değil|"
    "yanlış|όχι|δεν|μη|λάθος|не|нет|никогда|ні|ніколи|неправильно|不|不是|不要|不行|错|いいえ|違う|아니|"
    "아니요|틀려|لا|ليس|خطأ|לא|טעות"
)
"""What denies, when it comes first behind a choice."""

RETRACT = (
    "no wait|wait no|scratch that|i mean|i meant|second thought|second thoughts|correction|forget it|"
    "never mind|nevermind|other one|the other|the others|instead|rather|changed my mind|take it back|"
    "mistake|decide later|think about it|think it over|let me think|will think|not sure|unsure|"
    "not certain|maybe|perhaps|no idea|dont know|undecided|vielleicht|weiß nicht|weiss nicht|unsicher|"
    "nicht sicher|überlege|überlegen|stattdessen|doch nicht|doch lieber|lieber nicht|besser nicht|"
    "die andere|das andere|der andere|die anderen|ich meine|ich meinte|moment|peut être|plutôt|plutot|"
    "lautre|pas sûr|je ne sais pas|quizás|quizas|tal vez|mejor no|el otro|la otra|no sé|forse|altra|"
    "altro|non so|meglio di no|talvez|outra|não sei|misschien|toch niet|de andere|weet niet|kanske|"
    "den andra|vet inte|måske|kanskje|den anden|den andre|ehkä|toinen|może|raczej|druga opcja|možná|"
    "raději|radšej|talán|inkább|poate|mai bine|belki|ίσως|может быть|наверное|другой|лучше|можливо|краще|"
    "也许|可能|たぶん|やっぱり|아마|ربما|אולי"
)
"""What takes a choice back, or says that none was made yet, wherever it stands behind it."""

DOUBT = (
    "or|either|neither|nor|both|if|unless|otherwise|else|except|only if|provided|depends|wait|hold on|"
    "oder|entweder|weder|beide|beides|wenn|falls|sofern|sonst|außer|warte|ou|soit|aucun|les deux|si|sauf|"
    "sinon|attends|o|u|ambos|ninguno|excepto|espera|entrambi|se|tranne|altrimenti|aspetta|nenhum|senão|"
    "of|als|tenzij|anders|allebei|eller|om|hvis|ellers|annars|båda|begge|vänta|vent|tai|jos|molemmat|lub|"
    "albo|jeśli|jeżeli|chyba że|oba|nebo|buď|pokud|jestli|jinak|alebo|ak|inak|vagy|ha|különben|sau|dacă|"
    "altfel|veya|ya da|eğer|ή|αν|εάν|или|либо|если|иначе|або|якщо|інакше|或|或者|如果|もし|または|"
    "それとも|또는|만약|أو|إذا|או|אם"
)
"""What opens another way, when a line or a part of the sentence begins with it."""

ALL = (
    "all|all of them|all of these|everything|alle|alles|sämtliche|tous|toutes|tout|todos|todas|todo|"
    "tutti|tutte|tutto|tudo|allemaal|alla|allihop|kaikki|wszystkie|wszystko|všechny|všechno|všetky|"
    "všetko|mind|mindet|mindegyik|toate|hepsi|όλα|όλες|все|всі|全部|都|すべて|全て|모두|전부|الكل|כולם|"
    "הכל"
)
"""Every option, where several may be chosen and these are all the words."""

NONE = (
    "none|none of them|none of these|neither|neither of them|nothing|keine|keines|keins|keine davon|"
    "nichts|aucun|aucune|rien|ninguno|ninguna|nada|nessuno|nessuna|niente|nenhum|nenhuma|geen|"
    "geen van beide|ingen|inget|intet|ei mitään|żadne|żadna|żaden|nic|žádný|žádná|žiadny|žiadna|"
    "egyik sem|semmi|niciunul|niciuna|hiçbiri|κανένα|ничего|ни один|жоден|нічого|都不|无|なし|없음|"
    "لا شيء|כלום"
)
"""An option that begins so excludes the others."""

AND = (
    "and|und|et|y|e|ed|en|och|og|ja|sekä|i|oraz|a|és|si|și|şi|ve|και|и|та|й|和|与|と|그리고|및|و|ו|plus|sowie"
)
"""Between two choices, where several may be chosen."""

UNIT = (
    "hour|hours|h|hr|hrs|minute|minutes|min|mins|second|seconds|sec|ms|s|day|days|week|weeks|month|"
    "months|year|years|am|pm|oclock|percent|times|kb|mb|gb|tb|kib|mib|gib|px|people|persons|files|lines|"
    "tests|users|items|stunde|stunden|minuten|sekunden|tag|tage|tagen|woche|wochen|monat|monate|jahr|"
    "jahre|uhr|prozent|mal|personen|euro|euros|dollar|dollars|heure|heures|jour|jours|semaine|semaines|"
    "mois|ans|hora|horas|día|días|dias|semana|semanas|mes|meses|ora|ore|giorno|giorni|settimane|uur|uren|"
    "dagen|weken|timmar|dagar|timer|dage|dager|tuntia|päivää|godzin|godziny|dni|hodin|hodiny|óra|nap|"
    "saat|gün|ώρες|час|часа|часов|дня|дней|години|днів"
)
"""A number in front of one of these counts something, and is no option."""

ARTICLES = "a|i|e|o|u|y|à|s|k|v|z|w|c|d|l|j|m|n|t|x"
"""Single letters that are words somewhere: in a note they name an option only where that is plain."""

IF = "if|unless|otherwise|except|wenn|falls|sofern|sonst|sauf|sinon|excepto|tenzij|pokud|jeśli|если|иначе"
"""What puts a condition, wherever it stands behind a choice on its line."""

NAMING = "or|not|and|than|to|option|take|use|choose|oder|nicht|und|ou|pas|et|o|no|y|e|of|lieber|prefer"
"""Behind one of these a single letter names an option, also where it may be a word."""
