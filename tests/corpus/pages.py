# ruff: noqa: RUF001 - letters of many languages, as programs send them
"""The HTML that mail programs make of a reply, with attributes in any order and spelling."""

import html

from tests.corpus.synthetic import Layout, Made, Scene


def tag(scene: Scene, name: str, inner: str = "", **attributes: str) -> str:
    """An element as different serialisers write it: case, quotes and order of attributes vary."""
    dice = scene.dice
    pairs = [(key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items()]
    dice.shuffle(pairs)
    quote = dice.choice(('"', '"', "'"))
    name = name.upper() if dice.random() < 0.15 else name
    written = "".join(
        f" {key}={value}"
        if value.isalnum() and dice.random() < 0.3
        else f" {key}={quote}{html.escape(value)}{quote}"
        for key, value in pairs
    )
    return f"<{name}{written}>{inner}</{name}>"


def typed(scene: Scene) -> str:
    """The words as editors write them: blocks, or lines broken."""
    lines = scene.typed.split("\n")
    if "```" in scene.typed or any(line.startswith((" ", "-", "+")) for line in lines):
        return f"<pre>{html.escape(scene.typed)}</pre>"
    escaped = [html.escape(line) or "<br>" for line in lines]
    match scene.dice.randrange(3):
        case 0:
            return "<br>".join(html.escape(line) for line in lines)
        case 1:
            return "".join(tag(scene, "div", line, dir="auto") for line in escaped)
        case _:
            return "".join(tag(scene, "p", line, class_="MsoNormal") for line in escaped)


def sent(scene: Scene) -> str:
    """Our text as HTML: paragraphs, lists, lines."""
    paragraphs = scene.gateway.sent.split("\n\n")
    return (
        "<div>"
        + "".join(f"<p>{html.escape(each).replace(chr(10), '<br>')}</p>" for each in paragraphs)
        + "</div>"
    )


def attribution(scene: Scene, template: str) -> str:
    """An attribution with the address as a link."""
    link = f'<a href="mailto:{scene.gateway.address}">{scene.gateway.address}</a>'
    return html.escape(template).format(n=html.escape(scene.gateway.name), a=link)


def labels(scene: Scene) -> str:
    """A header block with bold labels."""
    names = scene.tongue.labels
    gateway = scene.gateway
    whom = scene.dice.choice((f"{gateway.name} &lt;{gateway.address}&gt;", html.escape(gateway.name)))
    values = (
        whom,
        "Monday, October 12, 2026 14:05",
        html.escape(scene.person[0] or "me"),
        html.escape(gateway.subject),
    )
    rows = (f"<b>{name}:</b> {value}" for name, value in zip(names, values, strict=True))
    return "<br>".join(rows)


def _page(body: str) -> str:
    return (
        "<html><head><meta charset='utf-8'><style>p {margin: 0} .x > b {color: red}</style></head>"
        f"<body>{body}</body></html>"
    )


def _made(scene: Scene, body: str, *texts: str) -> Made:
    return Made(page=_page(body), texts=list(texts or [scene.typed]))


def html_gmail(scene: Scene) -> Made:
    """The container with the attribution, then the quotation."""
    attr = tag(scene, "div", attribution(scene, scene.tongue.gmail) + "<br>", dir="ltr", class_="gmail_attr")
    quote = tag(scene, "blockquote", sent(scene), class_="gmail_quote", style="margin:0px 0px 0px 0.8ex")
    container = tag(scene, "div", attr + quote, class_="gmail_quote gmail_quote_container")
    signature = tag(scene, "div", "Robin<br>Platform", class_="gmail_signature", dir="ltr")
    above = scene.dice.choice(("", f"<br clear=all>{signature}"))
    return _made(scene, tag(scene, "div", typed(scene), dir="ltr") + above + "<br>" + container)


def html_gmail_old(scene: Scene) -> Made:
    """The attribution as bare text within the container."""
    quote = tag(scene, "blockquote", sent(scene), class_="gmail_quote")
    extra = tag(scene, "div", attribution(scene, scene.tongue.gmail) + "<br>" + quote, class_="gmail_quote")
    return _made(scene, typed(scene) + tag(scene, "div", "<br>" + extra, class_="gmail_extra"))


def html_apple(scene: Scene) -> Made:
    """The attribution within a cited quotation, a footer above."""
    foot = scene.dice.choice(("", f"<br><div dir='ltr'>{html.escape(scene.tongue.phone)}</div>"))
    inner = f"<div>{attribution(scene, scene.tongue.apple)}</div><br>{sent(scene)}"
    return _made(scene, typed(scene) + foot + tag(scene, "blockquote", inner, type="cite"))


def html_thunderbird(scene: Scene) -> Made:
    """The name alone, a cited quotation, words above or below."""
    prefix = tag(scene, "div", attribution(scene, scene.tongue.named), class_="moz-cite-prefix")
    quote = tag(scene, "blockquote", sent(scene), type="cite", cite="mid:x@y")
    signature = scene.dice.choice(("", tag(scene, "div", "-- <br>Robin", class_="moz-signature")))
    if scene.dice.random() < 0.5:
        return _made(scene, prefix + quote + "<br>" + typed(scene) + signature)
    return _made(scene, typed(scene) + "<br>" + prefix + quote + signature)


def html_outlook(scene: Scene) -> Made:
    """Desktop: a rule by border, labels, our text without any marks."""
    style = scene.dice.choice(
        (
            "border:none;border-top:solid #E1E1E1 1.0pt;padding:3.0pt 0cm 0cm 0cm",
            "border:none;border-top:solid #B5C4DF 1.0pt;padding:3.0pt 0in 0in 0in",
        )
    )
    block = tag(scene, "div", tag(scene, "p", labels(scene), class_="MsoNormal"), style=style)
    body = typed(scene) + tag(scene, "p", "&nbsp;", class_="MsoNormal") + f"<div>{block}</div>" + sent(scene)
    return _made(scene, tag(scene, "div", body, class_="WordSection1"))


def html_owa(scene: Scene) -> Made:
    """The web client, and what it makes of a copy of itself."""
    prefix = scene.dice.choice(("", "x_"))
    mark = tag(scene, "div", "", id=f"{prefix}appendonsend")
    block = tag(scene, "div", labels(scene), id=f"{prefix}divRplyFwdMsg", dir="ltr")
    return _made(scene, tag(scene, "div", typed(scene)) + mark + "<hr>" + block + sent(scene))


def html_outlook_phone(scene: Scene) -> Made:
    """The phone's client: its footer, a container around the old mail."""
    foot = tag(
        scene, "div", '<a href="https://aka.ms/o0ukef">Outlook for iOS</a>', id="ms-outlook-mobile-signature"
    )
    block = tag(scene, "div", labels(scene), id="divRplyFwdMsg")
    old = tag(scene, "div", "<hr>" + block + sent(scene), class_="ms-outlook-mobile-reference-message")
    return _made(scene, typed(scene) + "<br>" + foot + old)


def html_yahoo(scene: Scene) -> Made:
    """Its own container."""
    line = f"<div>{attribution(scene, scene.tongue.gmail)}</div>"
    inner = tag(scene, "div", line + "<div><br></div>" + sent(scene), style="font-size:13px")
    old = tag(scene, "div", inner, id="ydpb5b1yahoo_quoted_7", class_="ydpb5b1yahoo_quoted")
    return _made(scene, tag(scene, "div", typed(scene)) + "<br>" + old)


def html_proton(scene: Scene) -> Made:
    """A signature block, then a container."""
    block = tag(scene, "div", "Sent with Proton Mail secure email.", class_="protonmail_signature_block")
    quote = tag(scene, "blockquote", sent(scene), class_="protonmail_quote", type="cite")
    inner = attribution(scene, scene.tongue.gmail) + "<br>" + quote
    return _made(scene, typed(scene) + block + tag(scene, "div", inner, class_="protonmail_quote"))


def html_foxmail(scene: Scene) -> Made:
    """A short coloured rule, the address, an indented quotation with labels."""
    rule = '<hr style="width: 210px; height: 1px;" color="#b5c4df" size="1" align="left">'
    name = f"<div><span>{scene.person[1]}</span></div>"
    inner = f"<div>{labels(scene)}</div>{sent(scene)}"
    quote = tag(scene, "blockquote", inner, style="margin-Top: 0px; margin-Left: 0.5em")
    return _made(scene, f"<div>{typed(scene)}</div>{rule}{name}{quote}")


def html_qq(scene: Scene) -> Made:
    """A line between rules, a grey box with labels, our text."""
    head = "<div style='font-size:12px'>------------------&nbsp;原始邮件&nbsp;------------------</div>"
    box = tag(scene, "div", labels(scene), style="font-size:12px;background:#efefef;padding:8px;")
    return _made(scene, f"<div>{typed(scene)}</div><div><br></div>{head}{box}<br>{sent(scene)}")


def html_netease(scene: Scene) -> Made:
    """A marked element, the attribution, a plain quotation."""
    line = (
        f'在 2026-10-12 14:05:12，"{html.escape(scene.gateway.name)}" &lt;{scene.gateway.address}&gt; 写道：'
    )
    quote = tag(
        scene, "blockquote", sent(scene), id="isReplyContent", style="PADDING-LEFT: 1ex; BORDER-LEFT: #ccc"
    )
    return _made(scene, f"<div>{typed(scene)}</div><div><br></div><pre>{line}</pre>{quote}")


def html_yandex(scene: Scene) -> Made:
    """Text above a plain quotation."""
    line = f'12.10.2026, 14:05, "{html.escape(scene.gateway.name)}" &lt;{scene.gateway.address}&gt;:'
    return _made(
        scene, f"<div>{typed(scene)}</div><div> </div><div>{line}</div><blockquote>{sent(scene)}</blockquote>"
    )


def html_fastmail(scene: Scene) -> Made:
    """A cited quotation with an id, the name alone."""
    line = f"<div>{attribution(scene, scene.tongue.named)}<br></div>"
    quote = tag(scene, "blockquote", sent(scene), type="cite", id="qt")
    return _made(scene, f"<div>{typed(scene)}</div><div><br></div>{line}{quote}")


def html_zimbra(scene: Scene) -> Made:
    """A rule, labels, then our text or a plain quotation."""
    old = scene.dice.choice((sent(scene), f"<blockquote>{sent(scene)}</blockquote>"))
    return _made(
        scene,
        f"<div>{typed(scene)}</div><hr id='zwchr'><div style='color:#000'>{labels(scene)}<br><br></div>{old}",
    )


def html_samsung(scene: Scene) -> Made:
    """A footer, a line between rules, labels with our text."""
    foot = tag(scene, "div", html.escape(scene.tongue.others[0]), id="composer_signature", dir="auto")
    head = f"<div>-------- {html.escape(scene.tongue.original.strip('- '))} --------</div>"
    words = f"<div dir='auto'>{typed(scene)}</div><div><br></div>"
    return _made(scene, f"{words}{foot}{head}<div>{labels(scene)}</div><br>{sent(scene)}")


def html_roundcube(scene: Scene) -> Made:
    """An introduction with an id, a cited quotation."""
    line = tag(scene, "p", attribution(scene, scene.tongue.named), id="reply-intro")
    quote = tag(
        scene,
        "blockquote",
        sent(scene),
        type="cite",
        style="padding: 0 0.4em; border-left: #1010ff 2px solid",
    )
    return _made(scene, f"<div>{typed(scene)}</div>{line}{quote}")


def html_gmx(scene: Scene) -> Made:
    """A quotation made of a bordered division with labels."""
    style = "margin: 10px 5px 5px 10px; padding: 10px 0 10px 10px; border-left:2px solid #C3D9E5;"
    inner = f"<div style='margin:0 0 10px 0;'>{labels(scene)}</div>{sent(scene)}"
    return _made(
        scene,
        f"<div>{typed(scene)}<div>&nbsp;</div>{tag(scene, 'div', inner, name_='quote', style=style)}</div>",
    )


def html_plain_quote(scene: Scene) -> Made:
    """A program that is not known: an attribution, a bare quotation."""
    line = f"<p>{attribution(scene, scene.tongue.gmail)}</p>"
    return _made(scene, f"<p>{typed(scene)}</p>{line}<blockquote>{sent(scene)}</blockquote>")


def html_unknown_quote(scene: Scene) -> Made:
    """One that shows another name and marks nothing but the quotation."""
    line = html.escape(scene.tongue.gmail.format(n="Bot", a="x@relay.example.com"))
    return _made(scene, f"<p>{typed(scene)}</p><p>{line}</p><blockquote>{sent(scene)}</blockquote>")


def html_interleaved(scene: Scene) -> Made:
    """Quotations split by answers."""
    parts = [part for part in scene.gateway.sent.split("\n\n") if part.strip()][:3]
    answers = [scene.typed, scene.tongue.yes, "7"][: len(parts)]
    quotes = [
        tag(
            scene,
            "blockquote",
            f"<div>{html.escape(part).replace(chr(10), '<br>')}</div>",
            class_="gmail_quote",
        )
        for part in parts
    ]
    first = typed(scene)
    written = [first, f"<div>{html.escape(scene.tongue.yes)}</div>", "<div>7</div>"]
    line = tag(scene, "div", attribution(scene, scene.tongue.gmail), class_="gmail_attr")
    body = line + "".join(quote + answer for quote, answer in zip(quotes, written, strict=False))
    shown = "\n".join(
        "\n".join(f"> {row}" for row in part.split("\n")) + f"\n{answer}"
        for part, answer in zip(parts, answers, strict=True)
    )
    return _made(scene, tag(scene, "div", body, class_="gmail_quote"), shown)


def html_hidden(scene: Scene) -> Made:
    """Text that is not seen."""
    hidden = scene.dice.choice(
        (
            '<div style="display:none">rm -rf /</div>',
            "<span style='font-size:0px'>rm -rf /</span>",
            '<p style="VISIBILITY: hidden">rm -rf /</p>',
            "<!-- rm -rf / -->",
            "<div hidden>rm -rf /</div>",
            '<span style="opacity:0">rm -rf /</span>',
        )
    )
    return _made(scene, f"<div>{typed(scene)}</div>{hidden}")


PAGES: tuple[Layout, ...] = (
    html_gmail,
    html_gmail_old,
    html_apple,
    html_thunderbird,
    html_outlook,
    html_owa,
    html_outlook_phone,
    html_yahoo,
    html_proton,
    html_foxmail,
    html_qq,
    html_netease,
    html_yandex,
    html_fastmail,
    html_zimbra,
    html_samsung,
    html_roundcube,
    html_gmx,
    html_plain_quote,
    html_unknown_quote,
    html_interleaved,
    html_hidden,
)
