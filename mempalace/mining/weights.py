"""What each signal weighs, as tables: `place: signal`, then what it speaks for (and against).

Owns: the weights. They began as whole numbers set by hand from the rules of labelling. Those of
rooms, types, halls and importance were pulled by ridge regression towards 161 labelled exchanges of
two public repositories (entireio/cli and specstoryai/getspecstory; not in this one) and the 100 of
tests/mining/labelled.jsonl, rounded to quarters, and left out below 0.5. Those of sentences were
moved by whole steps, each of which had to gain two exchanges. A change is a new derive.VERSION.
Never: matches or scores anything (signals, weigh).
Called by: weigh, quotes.
"""

from __future__ import annotations


def _column(text: str) -> dict[str, float]:
    """`name  weight` a line."""
    rows = (line.rsplit(None, 1) for line in text.strip().splitlines())
    return {name.strip(): float(weight) for name, weight in rows}


def _table(text: str) -> dict[str, dict[str, float]]:
    """`name  class weight, class weight` a line."""
    rows = (line.strip().split("  ", 1) for line in text.strip().splitlines())
    return {
        name: {kind: float(weight) for kind, weight in map(str.split, cells.split(","))}
        for name, cells in rows
    }


ROOM = _table(
    """
    always                     technical +0.75, architecture -0.75, planning -0.5, problems +0.25
    answers: asks back         technical -0.5, architecture +0.5, planning +0.75, decisions +0.5
    answers: five or more      general -0.5
    answers: headings          architecture +0.5
    answers: long              general -0.5
    answers: one               general +0.5
    closing: advises           architecture +0.5
    closing: alternatives      architecture +0.5
    closing: cause             problems +0.5
    closing: chore             general +0.5
    closing: done              technical +0.5, architecture -0.5, planning -0.5
    closing: failure           problems +0.75
    closing: planning          planning +0.75
    closing: repaired          problems +1
    closing: structure         architecture +0.5
    ending: offers             technical -0.5
    ending: planning           planning +0.75
    first: orders              technical +0.5
    first: planning            planning +0.5
    first: settles             decisions +1
    first: taste               decisions +0.5
    first: wishes              decisions +0.5
    opening: agrees            decisions +0.75
    opening: answers           architecture +0.5
    opening: cause             problems +0.5
    opening: looks into        problems +0.75
    opening: planning          planning +1
    opening: sorry             general +0.75
    opening: structure         architecture +0.5
    prompt: alternatives       decisions +0.5
    prompt: asks               architecture +0.5, decisions -0.5
    prompt: asks a chore       general +1.75
    prompt: assent             general +0.5
    prompt: chore              general +0.75
    prompt: code               architecture +0.5
    prompt: failure            planning -0.5, problems +0.75
    prompt: few words          general +1.25
    prompt: long               general -1
    prompt: pasted             decisions -0.5, problems +0.75
    prompt: picks by number    decisions +0.75
    prompt: plan to carry out  technical +0.75, planning -0.5, decisions -0.5, general -0.5
    prompt: planning           planning +1.25
    prompt: review             technical +0.5, problems +0.5
    prompt: settles            decisions +0.75
    prompt: standing rule      technical +0.75, decisions +0.5
    prompt: structure          architecture +0.75, general -0.5
    prompt: test               technical +0.5
    prompt: trial              problems +0.5
    prompt: wonders            architecture +0.5, decisions +0.75
    result: agrees             decisions +0.5
    result: cause              problems +0.75
    result: chore              general +0.75
    result: done               technical +0.5
    result: made               technical +0.5
    result: repaired           problems +0.5
    result: reshaped           technical +0.5
    title: repaired            problems +0.75
    """
)
MEMORY_TYPE = _table(
    """
    always                     decision +0.25, milestone +0.5, emotional -0.5, none +0.25
    answers: asks back         decision +0.75, milestone -1.25, problem +0.75, none +0.5
    answers: breaks off        milestone -0.75, problem +0.5
    answers: fifteen or more   milestone +0.75
    answers: five or more      none -0.75
    answers: long              preference -0.5, emotional -0.75
    answers: one               milestone -0.5, emotional +0.5, none +1
    closing: advises           none +0.5
    closing: cause             problem +0.75
    closing: done              milestone +0.75
    closing: failure           problem +1
    closing: repaired          milestone +0.75
    closing: reshaped          decision +0.5
    closing: standing rule     preference +0.75
    ending: offers             milestone -0.75
    first: anger               emotional +0.75
    first: failure             problem +0.5
    first: settles             decision +1
    first: standing rule       preference +1
    first: taste               preference +1.5
    first: wishes              decision +0.5
    opening: agrees            decision +1
    opening: answers           none +0.5
    opening: cause             problem +0.5
    opening: failure           problem +0.5
    opening: sorry             emotional +1
    prompt: alternatives       decision +0.75
    prompt: anger              emotional +1.5
    prompt: asks               decision -0.5, none +0.75
    prompt: asks a chore       none +1.5
    prompt: assent             decision +0.75
    prompt: failure            milestone +0.5, problem +0.5
    prompt: feeling            emotional +1
    prompt: few words          none +0.5
    prompt: joy                milestone +0.75
    prompt: long               emotional -0.75
    prompt: pasted             problem +0.75
    prompt: picks by number    decision +1.5
    prompt: plan to carry out  milestone +1.25
    prompt: question           decision -0.5, none +0.5
    prompt: review             milestone +0.75
    prompt: settles            decision +1
    prompt: shouts             emotional +1.25
    prompt: standing rule      preference +2
    prompt: starts with question  none +0.75
    prompt: taste              preference +1
    prompt: trial              problem +1
    prompt: wonders            decision +0.5
    result: agrees             decision +0.75
    result: answers            none +0.5
    result: cause              problem +0.75
    result: chore              none +0.75
    result: done               milestone +0.5
    result: made               milestone +0.5
    result: repaired           milestone +0.75
    result: reshaped           milestone +0.5
    """
)
HALL = _table(
    """
    always                     facts +0.5, events +1, discoveries -0.25, advice -0.75
    answers: asks back         advice +0.5
    answers: five or more      advice -0.5
    closing: advises           advice +0.75
    closing: alternatives      advice +0.75
    closing: answers           discoveries +0.75
    closing: cause             discoveries +0.75
    closing: done              events +0.75
    closing: failure           discoveries +0.5
    closing: repaired          events +0.75
    closing: standing rule     preferences +0.75
    ending: advises            advice +0.75
    ending: offers             advice +0.5
    first: settles             facts +1
    first: standing rule       preferences +1
    first: taste               preferences +1.5
    first: wishes              facts +0.75
    opening: agrees            facts +1
    opening: cause             discoveries +0.5
    opening: looks into        discoveries +0.5
    prompt: anger              events +0.75
    prompt: asks               discoveries +0.75, advice +0.75
    prompt: asks a chore       events +1.25
    prompt: assent             facts +0.5
    prompt: few words          events +1
    prompt: order              events +0.5
    prompt: picks by number    facts +1.25
    prompt: plan to carry out  events +1.25
    prompt: question           facts -0.5, advice +1.25
    prompt: settles            facts +1
    prompt: standing rule      preferences +1.75
    prompt: starts with question  discoveries +0.75
    prompt: taste              preferences +1
    prompt: wonders            facts +0.5
    result: agrees             facts +0.5
    result: answers            discoveries +0.5
    result: cause              discoveries +0.75
    result: chore              events +0.5
    result: done               events +0.5
    result: made               events +0.75
    """
)
# A sum: 2 is a routine change, 3 a notable one.
IMPORTANCE = _column(
    """
    always                        +2.2
    type: milestone               +0.2
    type: decision                +0.4
    type: preference              +0.4
    type: problem                 +0.5
    room: general                 -0.3
    room: architecture            +0.3
    prompt: plan to carry out     +0.7
    prompt: grave                 +0.3
    closing: grave                +0.3
    title: big                    +0.3
    prompt: big                   +0.3
    closing: big                  +0.3
    prompt: structure             +0.1
    closing: cause                +0.2
    prompt: asks a chore          -0.4
    prompt: few words             -0.4
    answers: long                 +0.3
    answers: short                -0.1
    answers: five or more         +0.1
    answers: fifteen or more      +0.1
    answers: one                  -0.2
    prompt: standing rule         +0.4
    prompt: small                 -0.2
    closing: small                -0.1
    prompt: settles               +0.1
    first: settles                +0.2
    answers: headings             +0.1
    closing: repaired             +0.1
    closing: test                 -0.1
    answers: asks back            +0.1
    prompt: thanks                -0.5
    prompt: review                -0.2
    result: chore                 -0.5
    """
)
# How much each trait of a sentence speaks for quoting it.
SENTENCE = _column(
    """
    prompt: 1st                   +2
    prompt: 2nd                   +2
    prompt: 3rd                   +1
    prompt: said by people        +2
    prompt: problem               -1
    answer: 1st                   +1
    answer: 2nd                   +1
    answer: last                  +1
    heading                       -1
    prompt: title of a plan       +3
    filler                        -5
    answer: label                 +2
    answer: conclusion            +1
    prompt: contrast              +1
    answer: contrast              +1
    answer: now                   +1
    answer: reason                +1
    prompt: reason                +1
    answer: at work               -3
    prompt: works on              -1
    colon                         -2
    very short                    -1
    answer: question              -2
    prompt: question              -2
    answer: offers                -2
    prompt: thanks                -1
    prompt: settles               +1
    prompt: wishes                +2
    prompt: taste                 +1
    prompt: standing rule         +1
    answer: standing rule         +1
    prompt: anger                 +1
    prompt: failure               +1
    answer: failure               +1
    answer: cause                 +2
    prompt: cause                 +1
    answer: repaired              +1
    answer: reshaped              +1
    answer: done                  -1
    answer: advises               +1
    answer: grave                 +2
    answer: test                  -1
    answer: item                  -1
    answer: code words            -1
    prompt: brief                 -1
    what it is about              +1
    prompt: points                -1
    mostly code                   -1
    prompt: emotional             +6
    prompt: joy                   +1
    """
)
