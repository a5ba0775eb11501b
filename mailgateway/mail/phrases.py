"""Words of mail programs in many languages: the second line of defence, behind what the gateway knows itself.

Data only.  Everything is in the form that `str.casefold` gives.
"""

import re

AWAY_SUBJECTS = (
    "automatic reply",
    "automated reply",
    "automatic response",
    "auto reply",
    "auto-reply",
    "autoreply",
    "auto response",
    "auto-response",
    "autoresponse",
    "out of office",
    "out of the office",
    "out-of-office",
    "vacation reply",
    "automatische antwort",
    "automatische rückantwort",
    "abwesenheitsnotiz",
    "abwesenheitsbenachrichtigung",
    "abwesenheitsmeldung",
    "abwesenheit",
    "réponse automatique",
    "absence du bureau",
    "message d'absence",
    "respuesta automática",
    "fuera de la oficina",
    "ausente",
    "risposta automatica",
    "fuori sede",
    "fuori ufficio",
    "resposta automática",
    "ausência temporária",
    "fora do escritório",
    "automatisch antwoord",
    "automatische beantwoording",
    "afwezigheidsbericht",
    "afwezig",
    "autosvar",
    "automatiskt svar",
    "automatisk svar",
    "frånvaromeddelande",
    "fraværsmelding",
    "fraværsbesked",
    "automaattinen vastaus",
    "poissaoloviesti",
    "poissa",
    "odpowiedź automatyczna",
    "automatyczna odpowiedź",
    "autoodpowiedź",
    "nieobecność",
    "automatická odpověď",
    "mimo kancelář",
    "автоматический ответ",
    "автоответ",
    "автоматична відповідь",
    "автовідповідь",
    "自动回复",
    "自動回覆",
    "自動回復",
    "外出自動回覆",
    "自動応答",
    "自動返信",
    "不在通知",
    "자동 회신",
    "자동회신",
    "자동 응답",
    "부재 중",
    "otomatik yanıt",  # noqa: RUF001 - Turkish
    "otomatik cevap",
    "ofis dışında",  # noqa: RUF001 - Turkish
    "מענה אוטומטי",
    "תשובה אוטומטית",
    "رد تلقائي",
    "الرد التلقائي",
)
"""How the subject of an out-of-office notice begins."""

WROTE = re.compile(
    r"\b(?:wrote|writes|schrieb|schreibt|a écrit|écrit|escribió|escribe|ha scritto|scrive|escreveu|schreef"
    r"|skrev|skrifaði|kirjoitti|napisał|napisał\(a\)|pisze|napsal|napsala|написал|написала|пишет|написав|пише"
    r"|yazdı|said)\b|写道|寫道|のメッセージ|書きました|작성|כתב|كتب",  # noqa: RUF001 - Turkish
    re.IGNORECASE,
)
"""Verbs of attributions; only asked where the block already names the gateway."""

ORIGINAL_MESSAGE = re.compile(
    r"^[\s>]{0,6}(?:-{2,}|_{2,}|\*{2,})\s*\S.{0,60}?\s*(?:-{2,}|_{2,}|\*{2,})\s*$", re.IGNORECASE
)
"""``-----Original Message-----`` in any language: words between rules; asked only above our header block."""

FOOTERS = re.compile(
    r"(?:sent (?:from|via|using|with)|sent .{0,20}(?:iphone|ipad|android|mobile)|get outlook for|virus-free"
    r"|von meinem .{2,40} gesendet|gesendet (?:von|mit)|diese nachricht wurde von|outlook für|virenfrei"
    r"|envoyé (?:de|depuis|à partir)|télécharger outlook|enviado (?:desde|do|a partir|con)"
    r"|obte(?:r o|ner) outlook"
    r"|inviato (?:da|dal|con)|verzonden (?:vanaf|met|via)|verstuurd (?:vanaf|met)|skickat från|skickades från"
    r"|sendt fra|lähetetty|wysłane z|wysłano z|odesláno ze?\b"
    r"|отправлено (?:с|из)|надіслано (?:з|із)|відправлено з"  # noqa: RUF001 - Cyrillic
    r"|从我的.{1,20}发送|发自我的|從我的|傳送自|.{1,20}から送信|.{1,20}에서 보냄"
    r"|.{1,30}(?:ımdan|imden|umdan|ümden) gönderildi|נשלח מה|أُ?رسلت? من).{0,80}$",  # noqa: RUF001 - Turkish
    re.IGNORECASE,
)
"""Footers of mobile programs, whole lines; asked only for the last line."""

LIST_FOOTERS = re.compile(
    r"mailing list|unsubscribe|abmelden|désabonner|virus|avast|\bavg\b"
    r"|confidential|vertraulich|confidentiel|confidencial|riservat",
    re.IGNORECASE,
)
"""Words in the footer that a list, a virus scanner or a lawyer appends under a rule."""
