"""From bytes to text that can be kept: the charsets that are known, and the ladder when the label is wrong.

A charset's name is the sender's choice.  It is looked up in the table here and never handed on to the
registry of codecs, which ignores punctuation and knows codecs that are no charsets: some give lone
surrogates, some take quadratic time, and each new name stays in its cache.

Whatever leaves the reading of a mail as text is *storable*: it can be encoded as UTF-8 and holds no NUL.
A database takes such a text; one that is not would come back with every scan.
"""

import codecs
import re

NAME_LIMIT = 40
"""Characters of a charset's name; a longer one is unknown."""

CODECS = {
    "utf-8": "utf8 uft8 utf8mb4 unicode11utf8 usascii ascii ansix341968 646 iso646us us",
    "utf-16": "utf16 unicode ucs2 iso10646ucs2",
    "utf-16-le": "utf16le",
    "utf-16-be": "utf16be",
    "utf-32": "utf32 ucs4",
    "utf-32-le": "utf32le",
    "utf-32-be": "utf32be",
    "utf-7": "utf7 unicode11utf7",
    "cp1250": "windows1250 cp1250",
    "cp1251": "windows1251 cp1251",
    "cp1252": "windows1252 cp1252 iso88591 iso885911987 latin1 l1 cp819 ansi",
    "cp1253": "windows1253 cp1253",
    "cp1254": "windows1254 cp1254 iso88599 latin5 l5",
    "cp1255": "windows1255 cp1255",
    "cp1256": "windows1256 cp1256",
    "cp1257": "windows1257 cp1257",
    "cp1258": "windows1258 cp1258",
    "iso8859-2": "iso88592 latin2 l2",
    "iso8859-3": "iso88593 latin3 l3",
    "iso8859-4": "iso88594 latin4 l4",
    "iso8859-5": "iso88595 cyrillic",
    "iso8859-6": "iso88596 iso88596i iso88596e arabic",
    "iso8859-7": "iso88597 greek",
    "iso8859-8": "iso88598 iso88598i iso88598e hebrew",
    "iso8859-10": "iso885910 latin6 l6",
    "iso8859-13": "iso885913 latin7 l7",
    "iso8859-14": "iso885914 latin8 l8",
    "iso8859-15": "iso885915 latin9 l9",
    "iso8859-16": "iso885916 latin10 l10",
    "cp874": "windows874 cp874 tis620 iso885911 dos874",
    "koi8-r": "koi8r koi8 koi",
    "koi8-u": "koi8u koi8ru",
    "mac-roman": "macintosh macroman mac",
    "mac-cyrillic": "maccyrillic macukrainian",
    "cp437": "cp437 ibm437 437",
    "cp850": "cp850 ibm850 850",
    "cp852": "cp852 ibm852 852",
    "cp858": "cp858 ibm858 858",
    "cp862": "cp862 ibm862 862",
    "cp866": "cp866 ibm866 866",
    "gb18030": "gb18030 gb2312 gbk xgbk gb231280 csgb2312 cp936 ms936 windows936 euccn chinese",
    "hz": "hz hzgb2312",
    "big5hkscs": "big5 big5hkscs xxbig5 csbig5 cp950 big5tw windows950",
    "cp932": "shiftjis xsjis sjis cp932 ms932 windows31j windows932 csshiftjis mskanji",
    "euc_jp": "eucjp xeucjp cseucpkdfmtjapanese",
    "iso2022_jp_ext": "iso2022jp csiso2022jp iso2022jp1 iso2022jp2 iso2022jp3 iso2022jp2004 iso2022jpms"
    " cp50220 cp50221",
    "cp949": "ksc56011987 ksc56011989 ksc5601 euckr cp949 ms949 windows949 uhc korean",
    "iso2022_kr": "iso2022kr csiso2022kr",
}
"""Codec -> the labels that mean it, without their punctuation, as the web reads them (WHATWG Encoding): what
is labelled ISO-8859-1 or GB2312 is nearly always the wider set."""

_CODECS = {label: codec for codec, labels in CODECS.items() for label in labels.split()}
_PUNCTUATION = str.maketrans("", "", "-_ .:")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_META = re.compile(rb"<meta[^>]{0,200}charset=[\"']?([A-Za-z0-9_:.-]{1,40})", re.IGNORECASE)
_ESCAPED = "iso2022_jp_ext"


def storable(text: str) -> str:
    """The text with U+FFFD in place of each lone surrogate and NUL: UTF-8 can hold it, and so can a table."""
    return _UNSTORABLE.sub("\ufffd", text)


def codec_of(name: str) -> str | None:
    """The codec for a charset's name as a mail gives it; None for one that is not known."""
    name = name.strip().strip("\"'").lower()
    return _CODECS.get(name.translate(_PUNCTUATION)) if len(name) <= NAME_LIMIT else None


def decode_text(data: bytes, charset: str = "", *, cut: bool = False) -> str:
    """The storable text of the bytes: as `decode_raw` reads them."""
    return storable(decode_raw(data, charset, cut=cut))


def decode_raw(data: bytes, charset: str = "", *, cut: bool = False) -> str:
    """The text as declared, else by its escapes, as UTF-8, by its HTML, else as Windows-1252.

    ``cut`` says that the bytes may end in the middle of a character, which is left out then.  The result may
    hold NUL and lone surrogates: it is for those who look for them, others take `decode_text`.
    """
    codec = codec_of(charset)
    escaped = b"\x1b$" in data
    if (codec is not None or not data.isascii()) and not (escaped and codec in {None, "utf-8"}):
        declared = _strictly(data, codec, cut)
        if declared is not None:
            return declared
    text = (_strictly(data, _ESCAPED, cut) if escaped else None) or _strictly(data, "utf-8", cut)
    if text is not None:
        return text
    meta = _META.search(data, 0, 4096)
    text = _strictly(data, codec_of(meta[1].decode("ascii")), cut) if meta is not None else None
    return text if text is not None else data.decode("cp1252", "replace")


def _strictly(data: bytes, codec: str | None, cut: bool) -> str | None:
    if codec is None:
        return None
    try:
        if cut:
            return codecs.getincrementaldecoder(codec)().decode(data, final=False)
        return data.decode(codec)
    except UnicodeError:
        return None
