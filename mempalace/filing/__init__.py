"""An exchange or a file → drawers → one transaction: the heart of exactly-once (R1, R3).

`messages` decides where a record belongs, `streams` writes exchanges and their two texts.
"""

from mempalace.filing.messages import Filing
from mempalace.filing.origin import Filed, Origin
from mempalace.filing.wings import settle_sessions

__all__ = ["Filed", "Filing", "Origin", "settle_sessions"]
