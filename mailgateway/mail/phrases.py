"""Words of mail programs in many languages: the second line of defence, behind what the gateway knows itself.

Data only.  Everything is in the form that `str.casefold` gives.
"""
# ruff: noqa: RUF001 - letters of many languages

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
    "otomatik yanıt",
    "otomatik cevap",
    "ofis dışında",
    "מענה אוטומטי",
    "תשובה אוטומטית",
    "رد تلقائي",
    "الرد التلقائي",
    "خارج المكتب",
    "מחוץ למשרד",
    "abwesend",
    "abwesenheitsassistent",
    "nicht im büro",
    "nicht im haus",
    "außer haus",
    "absence",
    "absent",
    "absent du bureau",
    "absente du bureau",
    "en congé",
    "réponse d'absence",
    "fuera de oficina",
    "respuesta de ausencia",
    "ausencia",
    "assente",
    "assenza",
    "fora do escritorio",
    "ausente do escritório",
    "ausência",
    "afwezigheidsassistent",
    "afwezigheid",
    "niet aanwezig",
    "niet op kantoor",
    "frånvarande",
    "frånvaro",
    "inte på kontoret",
    "ej på kontoret",
    "fraværende",
    "fravær",
    "ikke til stede",
    "ikke på kontoret",
    "autosvar vid frånvaro",
    "poissa toimistolta",
    "poissaolo",
    "automaattivastaus",
    "poza biurem",
    "nieobecność w biurze",
    "nieobecny",
    "nepřítomnost",
    "nepřítomen",
    "nepřítomnost v kanceláři",
    "automatická odpoveď",
    "вне офиса",
    "нет на месте",
    "нет на работе",
    "отсутствие",
    "поза офісом",
    "відсутність",
    "відсутній",
    "自动答复",
    "不在办公室",
    "外出自动回复",
    "自動答覆",
    "不在辦公室",
    "外出",
    "不在",
    "不在のお知らせ",
    "不在応答",
    "부재중",
    "부재중 메시지",
    "자동 답장",
    "자동응답",
    "otomatik yanit",
    "iş yeri dışında",
    "i\u0307ş yeri dışında",
    "ofis dışındayım",
    "holiday reply",
    "vacation response",
    "vacation",
    "on vacation",
    "on leave",
    "away from the office",
    "away from my mail",
    "ooo",
)
"""How the subject of an out-of-office notice begins."""

RECEIPT_SUBJECTS = (
    "(?:not )?read",
    "(?:un)?gelesen",
    "nicht gelesen",
    "(?:non )?lu",
    "(?:no )?leído",
    "(?:non )?letto",
    "(?:não )?lida",
    "(?:niet )?gelezen",
    "(?:inte )?läst",
    "(?:ikke )?læst",
    "(?:ikke )?lest",
    "luettu",
    "przeczytan[oae]",
    "přečteno",
    "прочитано",
    "已读",
    "已讀",
    "開封済み",
    "읽음",
    "okundu",
    "נקרא",
    "مقروءة?",
)
"""How the subject of a receipt begins (patterns); an answer to ours begins otherwise."""

BOUNCE_SUBJECTS = re.compile(
    r"undeliver|delivery (?:status notification|failure|has failed)|mail delivery (?:failed|failure|system)"
    r"|returned mail|failure notice|message delivery failure|unzustellbar|non remis|no entregado"
    r"|no se puede entregar"
    r"|mancato recapito|recapito non riuscito|não (?:entregue|é possível entregar)|onbestelbaar"
    r"|kan inte levereras"
    r"|ikke leveret|kan ikke leveres|ei voitu toimittaa|niedostarczalne|nedoručitelné|не доставлено"
    r"|недоставлен"
    r"|系统退信|退信|無法傳遞|配信不能|未配信|배달되지 않음|반송|teslim edilemedi|לא ניתן למסור|تعذر التسليم",
    re.IGNORECASE,
)
"""How the subject of a bounce begins; asked only where there is no envelope sender."""

WROTE = re.compile(
    r"\b(?:wrote|writes|schrieb|schreibt|a écrit|écrit|escribió|escribe|ha scritto|scrive|escreveu"
    r"|schreef|geschreven"
    r"|skrev|skrifaði|kirjoitti|kirjutas|napisał|napisał\(a\)|pisze|napsal|napsala|napísal|написала?"
    r"|пишет|написав|пише"
    r"|yazdı|έγραψε|írta|a scris|napisao|va escriure|menulis|đã viết|said)\b"
    r"|写道|寫道|のメッセージ|のメール|書きました|작성|쓴 글|כתב|كتب|كتابة",
    re.IGNORECASE,
)
"""Verbs of attributions; only asked of a block that names the gateway, or stands above a known quotation."""

ORIGINAL_MESSAGE = re.compile(
    r"^[\s>]{0,6}(?:-{2,}|_{2,}|\*{2,})\s*\S.{0,60}?\s*(?:-{2,}|_{2,}|\*{2,})\s*$", re.IGNORECASE
)
"""``-----Original Message-----`` in any language: words between rules; asked only above our header block."""

FROM_LABELS = re.compile(
    r"[\s>*_]{0,6}(?:from|von|de|da|van|från|fra|lähettäjä|od|от|від|发件人|寄件者|寄件人|差出人|送信者"
    r"|보낸 ?사람|gönderen|kimden|מאת|من)[ *\xa0]{0,3}[:\uff1a]",
    re.IGNORECASE,
)
"""The label of the sender in a header block; asked where the block does not name the gateway."""

_PRODUCTS = (
    r"iphon\w|ipad|ipod|galaxy|samsung|android|outlook|huawei|honor|xiaomi|redmi|小米|华为|oppo|vivo"
    r"|oneplus|realme"
    r"|pixel|motorola|nokia|xperia|\bhtc\b|lenovo|blackberry|windows|yahoo|\baol\b|proton ?mail"
    r"|tuta(?:nota)?\b|\bgmx\b"
    r"|web\.de|k-9|thunderbird|mail\.ru|yandex|яндекс|mail для|gmail|\bspark\b|superhuman|airmail"
    r"|polymail|shortwave"
    r"|\bhey\b|missive|mailspring|canary mail|blue ?mail|nine\b|aqua mail|mymail|mailbird|em client"
    r"|edison|newton"
    r"|\bspike\b|\bboxer\b|typeapp|fairemail|zoho|fastmail|roundcube|zimbra|libero|orange|\bsfr\b"
    r"|qq ?邮箱|foxmail|网易"
    r"|163|naver|daum|kakao|t-online|ionos|icloud|apple ?mail|front\b|mail for windows|verizon"
    r"|t-mobile|at&t"
)
_DEVICES = (
    r"mobile?\b|phone|smartphone|tablet|\bcell|handy|telefon|téléphone|móvil|celular|telemóvel"
    r"|telefoon|puhelim"
    r"|телефон|мобильн|мобільн|пошт|почт|手机|手機|邮箱|信箱|電子郵件|電郵|携帯|スマート|휴대|핸드폰|스마트폰|טלפון|נייד"
    r"|هاتف|جوال|\bmail\b|\bapp\b"
)
PRODUCTS = re.compile(_PRODUCTS, re.IGNORECASE)
"""Names of devices and programs that sign what is sent with them."""

DEVICES = re.compile(_DEVICES, re.IGNORECASE)
"""Words for such things, which people use too."""

SENT_WITH = re.compile(
    r"(?:sent (?:from|via|using|with)\b|sent .{0,20}\bfrom my\b"
    r"|von meine[mr] .{2,50}\bgesendet|gesendet (?:von|mit|über|aus)\b|diese nachricht wurde (?:von|mit)\b"
    r"|envoyée? (?:de|depuis|à partir|avec|par|via|d['’])|enviad[oa] (?:desde|d[eoa]|a partir|con|com"
    r"|via|por|pel[oa])\b"
    r"|inviat[oa] (?:d[ae]\w*|con|tramite)\b|verzonden (?:vanaf|met|via|vanuit)\b|verstuurd (?:vanaf"
    r"|met|via|vanuit)\b"
    r"|skickat (?:från|med|via)\b|skickades från\b|sendt (?:fra|med|via)\b|lähetetty\b"
    r"|wysłan[aeoy] (?:z|ze|za|przez)\b|odeslán[aoy]? (?:z|ze|pomocí|přes)\b"
    r"|отправлен[оа]? (?:с|со|из|через|от)\b|надіслано (?:з|із|зі|через)\b|відправлено (?:з|із|зі)\b"
    r"|从我的.{1,30}发送|[发發寄]自|從我的.{1,30}傳送|傳送自|来自我的|來自我的|נשלח[הו]? (?:מ|באמצעות)"
    r"|أُ?رسل(?:ت|َت)? من|مرسلة? من|تم الإرسال)"
    r"|.{1,40}から送信|.{1,40}(?:에서|으로) ?(?:보냄|보냈습니다|전송|발송)"
    r"|.{1,40}(?:dan|den) gönderildi",
    re.IGNORECASE,
)
"""How a program says with what a mail was sent; names come from `PRODUCTS` and `DEVICES`."""

GET_OUTLOOK = re.compile(
    r"(?=.*\boutlook)(?=.*(?:ios|android|\bmac\b))"
    r"(?:get|download|obtén|obten|obtenir|obtenga|ottieni|scarica|baixar|obter|télécharge|holen|laden"
    r"|outlook|hämta|hent"
    r"|skaff|hanki|lataa|pobierz|získ|stáhn|получит|скача|отрима|завантаж|获取|下载|取得|下載|קבל|الحصول|احصل"
    r"|ios|android)"
    r".{0,60}",
    re.IGNORECASE,
)
"""Outlook's own advertisement, in its many languages: what to do, its name, and for which system."""

FOOTERS = re.compile(
    r"(?:virus-free|virenfrei|sans virus|libre de virus|privo di virus|livre de vírus|virusvrij|virusfri\w*"
    r"|wolny od wirusów|bez virů|без вирусов|без вірусів"
    r"|无病毒|ウイルス(?:なし|フリー))\W{0,3}(?:www\.\S{3,80})?"
    r"|yahoo mail: search, organi[sz]e, conquer"
    r"|.{0,60}\bplease (?:excuse|forgive|pardon)\b.{0,30}\b(?:brevity|typos?|spelling|errors)\b.{0,30}"
    r"|.{0,60}\bexcuse my brevity\.?"
    r"|.{0,60}\bfür die kürze\b.{0,30}|bitte entschuldigen sie .{0,20}kürze.{0,20}",
    re.IGNORECASE,
)
"""Further footers, whole lines."""

REACTIONS = re.compile(
    r".{1,80}\b(?:reacted|reagiert|réagi|reaccion\w+|reagito|reagiu|gereageerd|reager\w+|reagoi"
    r"|zareag\w+|reagov\w+"
    r"|отреагир\w+|відреаг\w+)\b.{0,20}\bgmail\b.{0,8}|.{0,80}gmail.{0,20}(?:回应|回應|リアクション|반응).{0,40}",
    re.IGNORECASE,
)
"""What Gmail writes under a reaction that it sends as a mail."""

LIST_FOOTERS = re.compile(
    r"mailing list|mailman|unsubscribe|you received this (?:message|e-?mail) because|abmelden"
    r"|abbestell|désabonn"
    r"|se désinscrire|cancelar la suscripción|darse de baja|disiscri|annulla l'iscrizione"
    r"|cancelar (?:a )?(?:inscrição|subscrição)"
    r"|afmelden|uitschrijven|avregistrera|avsluta prenumeration|afmeld|meld(?:e)? av|peruuta tilaus"
    r"|wypisać|anulować subskrypcję"
    r"|odhlásit|отписаться|відписатися|退订|取消订阅|退訂|配信停止"
    r"|購読解除|수신 ?거부|구독 ?취소|aboneliğ|להסרה|إلغاء الاشتراك"
    r"|v[ií]rus|virenfrei|viren |wirus|вирус|вірус|病毒|ウイルス"
    r"|바이러스|וירוס|فيروس|avast|\bavg\b|mcafee|kaspersky"
    r"|confidential|vertraulich|confidentiel|confidencial|riservat|vertrouwelijk|konfidentiell"
    r"|fortrolig|luottamuksell"
    r"|poufn|důvěrn|конфиденциальн|конфіденційн|保密|机密|機密|기밀|gizli|סודי|חסוי|سري",
    re.IGNORECASE,
)
"""Words in the footer that a list, a virus scanner or a lawyer appends under a rule."""

NOTICES = re.compile(
    r"(?=.*(?:confidential|vertraulich|confidentiel|confidencial|riservat|vertrouwelijk|konfidentiell"
    r"|fortrolig"
    r"|luottamuksell|poufn|důvěrn|конфиденциальн|конфіденційн|保密|机密|機密|기밀|gizli|סודי|חסוי|سري"
    r"|intended (?:only|solely|recipient)|addressee))"
    r"[\s*]{0,4}(?:confidential\w*(?: notice)?\b|disclaimer\b|legal notice|this (?:e-?mail|message"
    r"|communication|transmission)"
    r"|the (?:information|contents?) (?:contained )?(?:in|of) this|diese e-?mail|diese nachricht"
    r"|der inhalt dieser"
    r"|ce (?:message|courriel|mail)|cet e-?mail|este (?:mensaje|correo|e-?mail|mensagem)"
    r"|la información contenida"
    r"|esta mensagem|il presente|questo messaggio|questa e-?mail|le informazioni contenute"
    r"|dit (?:bericht|e-?mail)|deze e-?mail"
    r"|de informatie|detta (?:meddelande|e-?post|mail)|denne (?:e-?mail|e-?post|meddelelse|melding|mail)"
    r"|tämä (?:viesti|sähköposti)|ta wiadomość|niniejsz|tento e-?mail|tato zpráva|это (?:сообщение"
    r"|письмо|электронн)"
    r"|данное|настоящее|це повідомлення|цей лист"
    r"|本(?:邮件|電郵|郵件|メール|메일)|このメール|이 (?:메일|이메일|전자)"
    r"|bu (?:e-?posta|mesaj|ileti)|הודעה זו|דוא\"ל זה|هذه الرسالة|هذا البريد)",
    re.IGNORECASE | re.DOTALL,
)
"""A paragraph of a lawyer: how it begins, and a word that such a paragraph holds."""
