"""The words that the palace listens for, as data: what each list is called and what stands in it.

Owns: the lists. Rooms and memory types are those of MemPalace 3; forms of speech were
collected from how people and agents talk about work. A phrase is a row of whole words.
Never: weighs anything (weigh), matches anything (signals).
Called by: signals.
"""

from __future__ import annotations


def words(text: str) -> frozenset[str]:
    """The words of a list."""
    return frozenset(text.split())


# name → phrases, parted by `|`. The name is what `mempalace show --why` says.
SIGNALS: dict[str, str] = {
    # --- what it is about ---------------------------------------------------------------------
    "failure": """
        problem|problems|issue is|issue was|the issue|an issue|issues|bug|bugs|error|errors|
        crash|crashes|crashed|crashing|stuck|broken|broke|breaks|break|fail|fails|failed|
        failing|failure|failures|wrong|incorrect|incorrectly|wrongly|corrupt|corrupted|
        corruption|doesn't work|does not work|didn't work|don't work|not working|isn't working|
        won't work|regression|race condition|leak|leaks|flaky|mismatch|hang|hangs|hanging|
        freezes|timeout|times out|keeps failing|stopped working|lost|panic|exception|traceback|
        stack trace|ignoring|ignored|shouldn't be|can't find|nothing happens|no longer works|
        throws|deadlock|segfault|unreachable|somehow|unexpectedly|data loss|off by one""",
    "code": """
        code|python|function|functions|api|apis|database|server|deploy|deployed|git|debug|
        refactor|refactored|refactoring|method|methods|helper|helpers|variable|regex|constant|
        parameter|parameters|import|imports|library|compile|compiler|build|typed|types|string|
        strings|json|flag|flags|command|endpoint|query|script|scripts|config|settings|hash|
        logging|parser|parsing|format|formatting|binary|version|windows|unix|linux|docker|ci""",
    "test": """
        test|tests|testing|tested|test suite|coverage|unit tests|integration tests|e2e|lint|
        linter|linting|benchmark|fixture|fixtures|mocks""",
    "structure": """
        architecture|architectural|design|pattern|patterns|structure|schema|interface|
        interfaces|module|modules|component|components|service|services|layer|layers|
        data model|ownership|dependency|dependencies|circular|lifecycle|state machine|provider|
        providers|boundary|boundaries|abstraction|coupling|decoupled|flow|responsibility|
        concern|single source of truth|how do we handle|how we handle|how does the|
        how this happens|interact|interacts|scenario|scenarios|storage|protocol|event sourcing|
        microservice|microservices|monolith|diagram""",
    "planning": """
        plan|plans|planning|roadmap|milestone|milestones|deadline|priority|priorities|sprint|
        backlog|scope|requirement|requirements|spec|specification|phase|phases|ticket|tickets|
        linear|jira|todo|tasks|next steps|next step|follow-up|for later|postponed|estimate|
        estimates|schedule|quarter|next week|timeline|epic|epics|work items|what's next|
        what is next|in scope|out of scope|milestone plan|proposal|kickoff""",
    "alternatives": """
        option|options|approach|approaches|alternative|alternatives|trade-off|trade-offs|
        tradeoff|tradeoffs|pros|cons|pros and cons|choice|choices|versus|instead of|
        rather than|either|suggestion|suggestions""",
    "chore": """
        pushed|committed|merged|pr created|draft pr|rebased|bumped|tagged|cherry-picked|
        no conflicts|merge issues|gitignore""",
    "review": """
        feedback|review|reviewer|reviewed|consider|finding|findings|severity|nit|nits|
        duplicated|duplicates|inefficient|lacks|should be removed|should use|should either|
        address""",
    # --- what people do with words ------------------------------------------------------------
    "settles": """
        decided|we decided|decide on|chose|chosen|picked|switched|migrated|replaced|go with|
        going with|went with|settled on|settle on|let's use|let's go with|let's keep|
        let's drop|let's stick|stick with|switch to|i like option|option a|option b|option c|
        option d|option 1|option 2|option 3|option 4|drop|dropped|drop it|drop both|revert|
        reverted|roll back|rolled back|rollback|let's rename|rename to|never mind|nah|
        it's fine|is fine|agreed|we don't need|don't need|no need|invert|that's decided|
        final answer|we'll use|we will use|get rid of|not worth|let's set|set to|
        instead should|ship it|let's do|approved|agree with|decision made|moves to""",
    "wishes": """
        i want|i'd like|i would like|we want|we should|let's|lets|should be|should have|
        need to|we need|please|can we|could we|make sure|ensure|would be great|has to|must""",
    "wonders": """
        i think|i feel|i feel like|maybe|perhaps|what do you think|how about|what if|i wonder|
        wonder|does that make sense|make sense|makes sense to|should we|should i|or should|
        thoughts|would it be|is it worth|might|could use""",
    "asks": """
        explain|understand|why|how|what|which|difference|clarify|tell me|tell me again|
        do you have|is there|are there|does it|does this|did we|do we|is this|where|who|when|
        can you check|double check|how come|remind me|eval|evaluate|compare|look into|
        investigate|figure out""",
    "orders": """
        add|adds|fix|update|change|remove|delete|create|write|implement|rename|move|replace|
        refactor|extract|install|make|build|convert|migrate|generate|clean up|improve|support|
        handle|use|put|set up|configure|simplify|optimize|rewrite|document""",
    "standing rule": """
        should always|must always|we always|please always|always use|always run|always write|
        always add|always check|always ask|always keep|never use|never mock|never import|
        never commit|never push|never touch|never write|never read|never ask|don't use|
        don't mock|don't import|don't ever|do not ever|never ever|never again|from now on|
        i prefer|we prefer|prefer|preference|wherever we can|wherever possible|as a rule|
        my rule|our rule|rule of thumb|house rule|convention|conventions|my style|our style|
        style guide|in general|going forward|must never|standing|standing feedback|
        keep that in mind|stick to it|here on|policy|habit|claude.md|agents.md|snake_case|
        tabs over spaces|by default i|for all future|before every|after every|at all times|
        everywhere""",
    "taste": """
        i like|i don't like|don't like|i dislike|i hate|i love|i'm not a fan|not a fan|
        i prefer|i'd rather|i would rather|my favourite|my favorite|hard to read|
        easier to read|too verbose|too noisy|too clever|ugly|annoys me|bothers me|can't stand|
        unreadable|nice and obvious|i find it|prefer the""",
    "anger": """
        what the hell|what the heck|hell|wtf|wth|damn|damnit|crap|dude|no man|c'mon|come on|
        ugh|uhh|argh|seriously|stupid|ridiculous|nope|not good|how many times|i told you|
        i said|for the last time|fed up|sick of|tired of|furious|angry|annoyed|annoying|
        infuriating|frustrated|frustrating|unacceptable|useless|terrible|awful|this is insane|
        why would you|stop doing|oh god|oh no|jesus|omg|for god's sake|hopeless|driving me|
        give up|wasting my time|wasted""",
    "feeling": """
        love|afraid|scared|proud|hurt|happy|sad|miss|grateful|worried|i feel|i wish|
        never told anyone|lonely|excited|anxious|nervous|relieved|ashamed|heartbroken|
        overwhelmed|exhausted|burned out|crying|cried|means a lot|i'm so|so glad|thrilled|
        delighted|over the moon""",
    "joy": """
        it worked|it works|works great|working now|now it's working|it's working|perfect|
        awesome|amazing|great|excellent|nice|beautiful|wonderful|hooray|yay|well done|love it|
        brilliant""",
    "thanks": """
        thanks|thank you|thx|cheers|much appreciated|appreciate it""",
    "assent": """
        yes|yep|yeah|ok|okay|sure|go ahead|go for it|do it|sounds good|lgtm|alright|continue|
        it's perfect""",
    "trial": """
        i tried|i ran|i got|i'm getting|i get|i see|i noticed|i just noticed|when i|
        when running|now when|still|again|keeps|keep getting|reproduce|repro|suddenly""",
    # --- what answers say ---------------------------------------------------------------------
    "done": """
        done|all done|completed|finished|all tests pass|tests pass|all tests passing|all green|
        summary of changes|summary of the changes|changes made|here's a summary|
        here's what i changed|successfully|ready to commit|lint passes|linting passes|is clean|
        is live|went live|up and running|implementation complete|is complete|are complete|
        is now complete|went through""",
    "made": """
        added|created|implemented|built|wrote|written|introduced|new|now supports|shipped|
        launched|released|prototype|first version|set up|feature|features""",
    "reshaped": """
        renamed|replaced|removed|extracted|moved|cleaned|consolidated|simplified|reworded|
        rewrote|dead code|cleanup|updated|changed|converted|migrated|restored|reverted|dropped|
        bumped|duplicate|duplicated|duplication|redundant|unused""",
    "repaired": """
        fixed|fix|fixes|the fix|fixing|resolved|resolves|solved|no longer|now correctly|
        now works|works again|repaired|patched|workaround|bug fix|works now|working again|
        corrected|figured out|finally|got it working|breakthrough""",
    "cause": """
        root cause|the issue is|the issue was|the problem is|the problem was|the bug is|
        the bug was|this is a bug|caused by|turns out|found it|found the|here's what happened|
        the reason|the culprit|the actual issue|that's why|was never|happens when|occurs when|
        the cause|it was because|i see the|is the problem|was the problem|confirmed""",
    "agrees": """
        you're right|you're absolutely right|good point|good idea|great idea|makes sense|
        good call|got it|good catch|agreed|fair enough|fair point|excellent catch|
        good thinking|noted|understood|will do""",
    "answers": """
        good question|great question|excellent question|exactly|here's how|here's the|
        here's what|here are|in short|the difference|it depends|short answer|correct|
        looking at|how it works|this means|means that|for example|because|due to|only because""",
    "offers": """
        want me to|would you like|should i|shall i|do you want|let me know|ready to|
        which approach|what do you prefer|which one|how would you like|if you want|
        does this look|anything else|ready for|happy to|would you prefer|say the word|
        ready when you are|ready whenever|which would you|your call""",
    "advises": """
        recommend|recommended|i'd recommend|i'd go with|i'd suggest|suggest|i'd say|i would|
        my recommendation|you could|you can|best practice|better to|consider|potential|
        proposed|propose|i'd propose|pros|cons|tip|worth|simpler approach|alternatively""",
    "sorry": """
        sorry|i apologize|apologies|my mistake|i should have|my bad|i i misunderstood""",
    "works on": """
        let me|now let me|let me check|let me look|let me read|i'll start|i'll read|
        i'll explore|i'll investigate|now i|next i|let's verify""",
    "looks into": """
        let me investigate|let me trace|let me find|let me check|let me look|let me debug|
        i'll investigate|trace through|dig into|figure out|let me see""",
    "grave": """
        critical|security|secret|secrets|vulnerability|vulnerabilities|data loss|corruption|
        corrupt|production|outage|root cause|race condition|password|passwords|api key|leak|
        severity|high severity|privacy|breaking change|backwards compatibility|
        backward compatible|silently|deadlock|exposed|credentials|injection""",
    "big": """
        architecture|state machine|redesign|from scratch|new command|phase|migration|
        end-to-end|foundation|protocol|data model|the whole|across all|every|platform|
        infrastructure|release|launch|launched|shipped|first version|v1|v2|public beta|
        specification|test coverage""",
    # --- how a sentence is built --------------------------------------------------------------
    "contrast": """
        instead|rather than|no longer|but|not|don't|doesn't|didn't|isn't|aren't|wasn't|can't|
        won't|shouldn't|actually|only|without|never|regardless|nor|although|however""",
    "now": "now",
    "reason": "because|since|so that|due to|cause|caused|causes|causing|means|that's why|therefore",
    "small": """
        typo|typos|cosmetic|comment|comments|wording|message|casing|whitespace|rename|readme|
        gitignore|lint|formatting|docs|nit|tweak|minor|trivial|small""",
}

# name → phrases that count only where a sentence begins with them.
STARTS: dict[str, str] = {
    "order": SIGNALS["orders"],
    "label": """
        root cause|the root cause|cause|bug|the bug|problem|the problem|issue|the issue|fix|
        the fix|symptom|decision|key insight|why|result|reason|the reason|the culprit|
        net effect|the actual issue|before|after""",
    "conclusion": """
        so|this means|this ensures|this way|this is|now|these|that means|therefore|thus|
        in short|net|after|it's|it is|but|both|i've|i have|the""",
    "at work": """
        let me|now let me|i'll|i will|now i|next|let's verify|let's check|okay let me|
        good let me|perfect let me|first let me|excellent now|looking at|continuing|moving|
        working""",
}
# A sentence of nothing but these says nothing on its own ("Done.", "All 12 tests pass.").
FILLER = words("""
    a absolutely ah all alright and are call catch changes clean confirmed context correct done
    excellent final for found good got great green here here's hmm idea implement following plan in
    is it it's let's lint linter linting made made: makes makes-sense me my nice no nope noted
    now of
    oh ok okay one overview pass passes passing perfect point question right sense session so sorry
    summary sure test tests that that's the these this thanks to uh uhh understood was well what
    what's with wow yeah yep yes you you're your
    """)

# A word of these after one of NOT, at most three words behind it, does not count.
NEGATABLE = words("failure repaired done made cause anger feeling joy taste grave settles")
NOT = words(
    "no not never without isn't wasn't aren't don't doesn't didn't can't cannot won't nothing none "
    "hardly zero 0 less nor haven't hasn't"
)
# A question does not report: these words count only where they are not asked.
REPORTS = words("done made repaired reshaped joy settles")
