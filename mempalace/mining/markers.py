"""The markers of the five memory types in notes, as data (those that MemPalace 3 names).

Owns: the lists: 20 decision, 16 preference, 33 milestone, 18 problem, 29 emotional, and what turns
a milestone into a discovery. A marker is a row of whole words; `…` stands for up to three words.
Never: matches anything (extract).
Called by: extract.
"""

from __future__ import annotations

from mempalace.mining.vocabulary import words

MARKERS: dict[str, str] = {
    "decision": """
        let's use|let's go with|let's switch to|we decided|we chose|we went with|settled on|
        instead of|rather than|because|the reason is|trade-off|pros and cons|architecture|approach|
        strategy|set to|configure|default|decided to""",
    "preference": """
        i prefer|always use|never use|don't use|don't mock|don't import|i like|i hate|please always|
        please never|my rule|my style|snake_case|tabs|use … instead of|i don't like""",
    "milestone": """
        it works|got it working|fixed|solved|breakthrough|figured out|finally|first time|discovered|
        realised|realized|turns out|the key is|built|implemented|shipped|launched|released|
        prototype|
        version #|#x faster|#% less|works now|completed|deployed|finished|proof of concept|
        nailed it|cracked it|up and running|goes live|went live|all tests pass""",
    "problem": """
        bug|bugs|error|errors|crash|crashed|crashes|fail|fails|failed|broke|broken|doesn't work|
        keeps failing|root cause|the fix is|workaround|that's why""",
    "emotional": """
        love|loved|afraid|scared|proud|hurt|happy|sad|miss|missed|sorry|grateful|worried|i feel|
        i felt|i wish|never told anyone|lonely|ashamed|excited|anxious|heartbroken|relieved|joy|
        cried|crying|tears|angry|fear""",
}
# Milestones that are insights: hall discoveries instead of events.
INSIGHTS = words("breakthrough discovered realised realized") | {
    "figured out", "turns out", "the key is", "cracked it",
}  # fmt: skip
# What resolves a problem, and what feelings a paragraph shows.
RESOLVED = """
    fixed|solved|resolved|it works|got it working|works now|figured out|the fix is|workaround|
    repaired|patched|working again|all tests pass"""
POSITIVE = words(
    "works working fixed solved resolved great good finally happy proud perfect excellent nice "
    "love success successfully passes pass clean faster better green relieved glad stable"
)
NEGATIVE = words(
    "broken fails failed failing crash crashes crashed stuck wrong worse bad terrible lost hate "
    "sad angry annoying frustrating still again unfortunately unresolved unclear open flaky"
)
