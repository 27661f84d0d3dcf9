"""Words that touch another script are found, in what was said and in the question."""

import pytest

from mempalace.search import Hit, ask, find
from mempalace.store.palace import Palace
from tests.palace_builder import PalaceBuilder


@pytest.fixture
def builder(palace_home):
    with PalaceBuilder(palace_home) as building:
        yield building


def found(builder: PalaceBuilder, text: str, question: str) -> list[Hit]:
    session = builder.session()
    session.prompt("something else entirely")
    session.prompt(text)
    builder.file()
    with Palace.reader(builder.config.home) as palace:
        return list(find(palace, ask(question)).results)


@pytest.mark.parametrize(
    ("text", "question", "marked"),
    [
        ("このAPIを修正してください", "API", "API"),
        ("把config.yaml里的port改成8080端口", "config.yaml", "config.yaml"),
        ("把config.yaml里的port改成8080端口", "port", "port"),
        ("把config.yaml里的port改成8080端口", "8080", "8080"),
        ("把config.yaml里的port改成8080端口", "端口", "端口"),
        ("関数getUserById()を呼ぶ", "getUserById", "getUserById"),
        ("foo中bar", "foo", "foo"),
        ("foo中bar", "bar", "bar"),
        ("用Python写", "python", "Python"),
        ("版本3.14的", "3.14", "3.14"),
        ("变量my_var_name是", "my_var_name", "my_var_name"),
        ("看src/app/main.ts文件", "src/app/main.ts", "src/app/main.ts"),
        ("看src/app/main.ts文件", "main.ts", "main.ts"),
        ("API를고쳐", "API", "API"),
        ("ใช้Pythonเขียน", "Python", "Python"),
        ("fixБаг", "Баг", "Баг"),
        ("fixБаг", "fix", "fix"),
        ("fixБаг", "fixБаг", "fixБаг"),
        ("fix Баг", "fixБаг", "fix Баг"),
        ("２０２６年", "2026", "２０２６"),
        ("in 2026 it was", "２０２６", "2026"),
        ("ＡＰＩ", "api", "ＡＰＩ"),
        ("жёлтый дом", "желтый", "жёлтый"),
        ("желтый дом", "жёлтый", "желтый"),
        ("жёлтый дом", '"жёлтый дом"', "жёлтый дом"),
        ("тёмно-синий", "темно-синий", "тёмно-синий"),
        ("10µs", "10µs", "10µs"),
        ("what python decorators do", '"python decorators"', "python decorators"),
    ],
)
def test_it_is_found_and_marked(builder, text, question, marked):
    (hit,) = found(builder, text, question)
    assert hit.text == text
    assert [hit.text[begin:end] for begin, end in hit.marks] == [marked]


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("decorators in python", '"python decorators"'),
        ("用name_var写", "var_name"),
        ("用Python写", "Pyth"),
    ],
)
def test_what_was_not_said_is_not_found(builder, text, question):
    assert found(builder, text, question) == []
