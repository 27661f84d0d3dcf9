"""The dialect's word lists: what is no topic, what sounds like a decision, a feeling, a flag.

Owns: the tables, and nothing but tables. Codes and flags are AAAK's own; the words that
    call for them are our own.
Never: holds a rule; they are in text.py and encoder.py.
Called by: mempalace.dialect, mempalace.mining.closets.
"""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# No topic by themselves: English function words, the small talk of a chat with an agent, and the
# keywords that code in a talk is full of. In lower case; an apostrophe ends a word ("don't": don).
STOP_WORDS = _words("""
    a about above across actually after again against ago all almost along already also although
    always am among an and another any anybody anyone anything anyway are aren around as at away
    back be became because become been before being below between both but by came can cannot come
    comes could couldn did didn do does doesn doing don done down during each either else enough
    even ever every everybody everyone everything except far few first for from further gave get
    gets getting give given gives go goes going gone good got great had hadn has hasn have haven
    having he her here hers herself him himself his how however if in indeed instead into is isn it
    its itself just keep kind knew know known last later least less let lets like likely little ll
    look looking looks lot made make makes making many may maybe me mean means might mine more most
    much must my myself near need needs neither never new next no nobody none nor not nothing now
    of off often ok okay old on once one ones only onto or other others otherwise our ours ourselves
    out over own per perhaps please possible probably put quite rather re really right said same saw
    say says second see seem seems seen several shall she should shouldn show shows since so some
    somebody someone something sometimes soon still such sure take taken takes team tell than thank
    thanks that the their theirs them themselves then there therefore these they thing things think
    third this those though through thus till time to today together told too took toward tried try
    trying two under unless until up upon us use used uses using ve very via wait want wanted wants
    was wasn way ways we well went were weren what whatever when where whether which while who whole
    whom whose why will with within without won work working works would wouldn yeah yes yet you
    your yours yourself
    add added adding adds check checked checking checks complete completed correct correctly file
    files fine full needed ran run running runs set sets setting start started starts
    hello hey hi hmm sorry welcome guys people person example below above line lines note
    async await bool break case catch class const continue def default elif enum export extends
    false finally float func import int interface isinstance lambda len null none pass print private
    public raise return self static str string struct super switch throw true type typeof undefined
    var void yield https http www com org
""")

# What makes a sentence a decision, a finding or a rule, and how much. Lower case, whole words.
DECISION_MARKERS: dict[str, int] = {
    "decided": 4, "decision": 3, "we chose": 4, "i chose": 4, "chosen": 3, "picked": 3,
    "settled on": 4, "agreed": 3, "went with": 4, "go with": 4, "going with": 4, "let's use": 4,
    "let's go": 2, "switch to": 3, "switched to": 4, "migrated": 3, "replaced": 2,
    "instead of": 3, "rather than": 2, "trade-off": 2, "we will use": 3, "we use": 1,
    "from now on": 4, "always": 1, "never": 1, "must": 1, "should": 1, "prefer": 3,
    "recommend": 2, "recommended": 2, "root cause": 4, "turns out": 3, "turned out": 3,
    "the fix": 3, "fixed": 2, "solved": 2, "the reason": 2, "because": 1, "the plan": 2,
    "works now": 3, "it works": 2, "the problem": 2, "the key": 2,
}  # fmt: skip

# Where a long sentence may be cut so that what is left still says something.
CLAUSE_BREAKS = (
    " because ", " since ", " so that ", " although ", " which ", " while ", " and then ",
    ", ", "; ", ": ", " - ", " – ", " — ", " (",
)  # fmt: skip

# A word at the start of a sentence is a name where one of these follows: somebody did something.
PERSON_VERBS = _words("""
    added agreed argued asked believes built chose decided disagreed explained feels felt fixed
    found hates insisted likes loves mentioned noticed objected pointed preferred prefers promised
    proposed recommended recommends replied reported reviewed said says suggested suggests thinks
    thought told wanted wants warned wrote
""")

# Capitalised in the middle of a sentence, and nobody all the same.
NO_NAMES = _words("""
    monday tuesday wednesday thursday friday saturday sunday january february march april may june
    july august september october november december english german french spanish chinese japanese
    god internet earth mr mrs ms dr
""")

EMOTIONS: dict[str, frozenset[str]] = {
    "vul": _words("vulnerable exposed fragile naked unprotected"),
    "joy": _words("joy joyful happy happily delighted glad yay cheerful"),
    "fear": _words("fear afraid scared terrified frightened scary"),
    "trust": _words("trust trusted trusting rely reliable"),
    "grief": _words("grief grieving mourning mourn loss heartbroken"),
    "wonder": _words("wondrous wonderful amazed amazing astonishing awe"),
    "rage": _words("rage furious angry anger outraged"),
    "love": _words("love loved loves loving adore"),
    "hope": _words("hope hoped hopeful hopefully hoping"),
    "despair": _words("despair hopeless desperate desperately"),
    "peace": _words("peace peaceful calm calmly serene"),
    "relief": _words("relief relieved phew"),
    "humor": _words("funny humor humour joke joking hilarious haha lol"),
    "tender": _words("tender tenderness gentle gently"),
    "raw": _words("brutally confess confessed confession unfiltered"),
    "doubt": _words("doubt doubts doubtful unsure uncertain skeptical sceptical"),
    "anx": _words("anxious anxiety worried worry worrying nervous uneasy"),
    "exhaust": _words("exhausted exhausting tired weary drained burnout"),
    "convict": _words("convinced conviction certain certainly definitely absolutely insist"),
    "passion": _words("passion passionate passionately obsessed"),
    "warmth": _words("warm warmth warmly cosy cozy"),
    "curious": _words("curious curiosity wondering intrigued fascinating"),
    "grat": _words("grateful gratitude thankful appreciate appreciated"),
    "frust": _words("frustrated frustrating frustration annoyed annoying ugh stuck"),
    "confuse": _words("confused confusing confusion puzzled baffled"),
    "satis": _words("satisfied satisfying satisfaction pleased proud"),
    "excite": _words("excited exciting excitement thrilled"),
    "determ": _words("decided determined committed resolved resolve"),
    "surprise": _words("surprised surprising surprise unexpected unexpectedly wow"),
}

FLAGS: dict[str, frozenset[str]] = {
    "ORIGIN": _words("began begin beginning founded origin originally started"),
    "CORE": _words("always core essential fundamental never principle principles vital"),
    "SENSITIVE": _words("confidential password personal private secret secrets sensitive"),
    "PIVOT": _words("breakthrough pivot pivoted realised realized rethink rethought"),
    "GENESIS": _words("built created implemented invented launched released shipped"),
    "DECISION": _words("agreed chose chosen decided decision instead picked settled switched"),
    "TECHNICAL": _words("""
        api algorithm architecture backend build cache code compile component config container
        database debug deploy deployed deployment endpoint error exception frontend function index
        interface library method migration model module parser pipeline protocol python query
        queries refactor regex schema script server sql test tests thread token
    """),
}
