"""HTML read by the standard library: is every element closed, which are there, what do they say."""

from html.parser import HTMLParser

_VOID = {"meta", "link", "img", "source", "input", "br", "hr"}


class _Reader(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.open, self.found, self.words, self.wrong = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if len(dict(attrs)) != len(attrs):
            self.wrong.append(f"an attribute twice in <{tag}>")
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}> closes nothing")

    def handle_data(self, data):
        self.words.append(data)


def well_formed(text):
    """Whether every element is closed, in order."""
    reader = _Reader(text)
    return not reader.wrong and not reader.open


def elements(text):
    """All elements as (tag, attributes)."""
    return _Reader(text).found


def text_of(text):
    return "".join(_Reader(text).words)
