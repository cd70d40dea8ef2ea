"""Where parts of a page stand when it is printed: Chromium's outline of the PDF has each heading's place."""

import re
from dataclasses import dataclass

MARKED = """() => {
    const mark = (part, words, last) => {
        const heading = document.createElement('h6');
        heading.textContent = words;
        part[last ? 'append' : 'prepend'](heading);
    };
    document.querySelectorAll('figure').forEach((figure, i) => {
        mark(figure, `figure ${i}`);
        mark([...figure.querySelectorAll('figcaption > p:not(.keep)')].at(-1), `end ${i}`, true);
    });
    const headings = [...document.querySelectorAll('h2, h3, caption')];
    headings.filter(part => part.checkVisibility()).forEach((part, i) => {
        let next = part.tagName === 'CAPTION' ? part.parentElement.querySelector('tbody td, tbody th')
                                              : part.nextElementSibling;
        while (/^(OL|UL|DL|DIV|TABLE)$/.test(next.tagName)) next = next.firstElementChild;
        if (part.tagName === 'CAPTION') mark(part, `heading ${i}`);
        else part.textContent = `heading ${i}`;
        mark(next, `text ${i}`);
    });
}"""
SMALL = "h6 { display: inline; font-size: 1px; margin: 0; white-space: nowrap; }"
ENTRY = re.compile(rb"/Title \(([a-z]+) ?(\d+)\)\s*/Dest \[(\d+) 0 R /XYZ")


@dataclass(frozen=True)
class Printed:
    """Of each kind of part, by its number, the page on which it stands; and how many pages there are."""

    pages: int
    places: dict[str, dict[int, int]]


def check_breaks(layout: Printed, figures: int) -> None:
    """No heading ends a page, no figure is cut, and figures stand in twos."""
    places = layout.places
    torn = {n: p for n, p in places["heading"].items() if p != places["text"][n]}
    assert torn == {}
    assert places["figure"] == places["end"]
    assert len(set(places["figure"].values())) <= figures / 2 + 1


def printed(page, style: str = "") -> Printed:
    """The page on A4. Headings and figures get marks of one pixel, which the outline then names."""
    page.emulate_media(media="print")
    page.add_style_tag(content=SMALL + style)
    page.evaluate(MARKED)
    pdf = page.pdf(format="A4", outline=True, tagged=True, prefer_css_page_size=True)
    sheets = [int(number) for number in re.findall(rb"(\d+) 0 obj\s*<</Type /Page\b", pdf)]
    places: dict[str, dict[int, int]] = {}
    for kind, number, sheet in ENTRY.findall(pdf):
        places.setdefault(kind.decode(), {})[int(number)] = sheets.index(int(sheet))
    return Printed(len(sheets), places)
