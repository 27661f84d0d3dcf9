"""Where does a record belong, and what of it is kept?

Owns: the rules of the palace over what a format module read: exclusion and privacy (R10), echoes
(R11), forgotten keys (R4), known records (R3), answers without a prompt, prompts that were none.
Never: reads a file; opens or ends a transaction: the caller's commits the checkpoint with it (R5).
Called by: watcher.capture.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from mempalace.config import Config
from mempalace.filing.forgotten import RULE as FORGOTTEN
from mempalace.filing.forgotten import End, Forgotten, Tombstones
from mempalace.filing.origin import Filed, Origin
from mempalace.filing.streams import Streams
from mempalace.filing.wings import wing_for
from mempalace.mining import private
from mempalace.model import Message, Role
from mempalace.store import debts, exchanges, forget, places
from mempalace.store.exchanges import Known, Stored
from mempalace.transcripts.base import COPIED

_IMPORTANCE = 3  # the middle, until it is computed from the words
_IMPORTANCE_OF_COMMANDS = 2
_CUT_ROLES = frozenset({Role.CALL, Role.RESULT, Role.NOISE})  # kept up to mining.tool_chars
_SPOKEN = frozenset({Role.HUMAN, Role.SAID, Role.ASSISTANT})


class Filing:
    """Files the messages of one piece of one file: `file` any number of times, then `close`.

    `state` is what `close` gave for the piece before: keys of the open exchanges, never text.
    """

    def __init__(
        self,
        db: sqlite3.Connection,
        config: Config,
        origin: Origin,
        state: dict[str, str],
        now: int,
    ) -> None:
        self._db = db
        self._config = config
        self._origin = origin
        self._now = now
        self._streams = Streams(db, now)
        self._headless: dict[int, bool] = {}
        self._tombstones = Tombstones(db)
        self._called_in = debts.called_in(db, origin.file)
        self._gone_at = -1  # the line that took forgotten words back: it may say them otherwise
        self._open = self._end_of(state.get("open"))
        self._subagent = self._end_of(state.get("subagent"))
        self._private_to_its_end = state.get("private", "")  # a message, by name
        self.filed = Filed()

    def close(self) -> dict[str, str]:
        """Write what still grows; the state for the next piece."""
        self._streams.close()
        self.filed.drawers = self._streams.drawers
        ends = {"open": self._open, "subagent": self._subagent}
        state = {
            name: end.id if isinstance(end, Forgotten) else exchanges.id_of(self._db, end)
            for name, end in ends.items()
            if end is not None
        }
        if self._private_to_its_end:
            state["private"] = self._private_to_its_end
        return state

    def file(self, messages: Iterable[Message]) -> None:
        """File messages in the order in which the file has them."""
        for message in messages:
            if message.role in (Role.RETRACTED, Role.SUPERSEDED):
                self._withdraw(message)
            elif self._is_kept(message):
                self._store(message)

    # --- what is kept ---------------------------------------------------------------------------

    def _is_kept(self, message: Message) -> bool:
        rule = self._rule_against(message)
        if not rule:
            return True
        self.filed.left_out[rule] += 1
        if rule == FORGOTTEN:
            self._pass_forgotten(message)
        elif message.role is Role.HUMAN and rule != "taken back":
            self._open = None  # what answers it is not the answer to the prompt before
        return False

    def _pass_forgotten(self, message: Message) -> None:
        """What follows a forgotten record goes where that went, as it would have with it."""
        for exchange in self._tombstones.opened_by(message):
            self._forget(exchange)
        shorter = exchanges.find(self._db, message.grows) if message.grows else None
        if shorter is not None:  # the beginning of what was forgotten, from another copy
            forget.tombstone(self._db, exchanges.keys_of(self._db, shorter.n))
            self._streams.drop(shorter)
        end = self._tombstones.spread(message)
        if message.rule == "subagent":
            self._subagent = end
        elif message.role is Role.HUMAN or not self._is_there(self._open):
            self._open = end

    def _is_there(self, end: End) -> bool:
        return isinstance(end, Forgotten) or exchanges.exists(self._db, end)

    def _forget(self, exchange: int) -> None:
        """A prompt was stored before a line told that its words are ones that were forgotten."""
        self._streams.flush(exchange)
        exchange_id = exchanges.id_of(self._db, exchange)
        end = Forgotten(bytes.fromhex(exchange_id))
        self._open = end if self._open == exchange else self._open
        forget.forget(self._db, [exchange_id], self._now)

    def _rule_against(self, message: Message) -> str:
        """The rule that leaves a message out, or ''."""
        origin, config = self._origin, self._config
        cwd = message.cwd or origin.cwd
        if config.excludes(cwd=cwd, path=origin.path, session=message.session):
            return "excluded"
        if message.rule == COPIED:
            if not self._is_called_in(message):
                return COPIED
        elif message.rule and not (message.text and config.keeps(message.rule)):
            return message.rule
        if message.role is Role.HUMAN and exchanges.is_withdrawn(self._db, message.keys[0]):
            return "taken back"
        is_task = message.kind == "task"  # begins something new beside the conversation
        beside = None if is_task else self._subagent
        end = beside if message.rule == "subagent" else self._open
        is_instead = message.role is Role.HUMAN and message.offset == self._gone_at
        return FORGOTTEN if is_instead or self._tombstones.cover(message, end) else ""

    def _is_called_in(self, message: Message) -> bool:
        """Must a copy tell what its parent does not? Else it is owed, until it is known here."""
        if message.session in self._called_in:
            return True
        if message.role in _SPOKEN and not any(
            exchanges.find(self._db, key) for key in message.keys
        ):
            debts.owe(self._db, self._origin.file, message.session, message.keys[0])
        return False

    def _kept_text(self, message: Message) -> tuple[str, int]:
        """The text as it is stored, and the number of characters left out of it (R10, R11)."""
        text = private.strip_echo(private.strip_private(message.text))
        whole = message.whole or f"@{message.offset}"
        if whole == self._private_to_its_end and message.grows is None:
            text = ""
        elif private.is_left_open(message.text):
            self._private_to_its_end = whole
        elif whole == self._private_to_its_end:
            self._private_to_its_end = ""  # the same text, grown over the end of the block
        if message.role not in _CUT_ROLES:
            return text, 0
        limit = self._config.tool_chars
        if message.role is Role.RESULT and private.is_own_tool(message.call_name):
            limit = 0
        if limit < 0 or len(text) <= limit:
            return text, 0
        omitted = len(text) - limit
        return (f"{text[:limit]} [… {omitted} characters left out]" if limit else ""), omitted

    # --- one record -----------------------------------------------------------------------------

    def _store(self, message: Message) -> None:
        text, omitted = self._kept_text(message)
        if message.role in _SPOKEN and not text.strip():
            self.filed.left_out["private"] += 1  # nothing is left of it
            if message.role is Role.HUMAN and private.is_private(message.text):
                self._open = None
            return
        known = self._find(message)
        if message.role is Role.HUMAN:
            self._store_prompt(message, text, known)
        elif known is not None:
            self._meet(message, text, omitted, known)
        else:
            self._add(message, text, omitted)

    def _store_prompt(self, message: Message, text: str, known: Known | None) -> None:
        if known is None:
            exchange = self._new_exchange(message, headless=False)
            record = self._append(exchange, message, text, 0)
            self.filed.exchanges_new += 1
        else:
            exchange, record = known.exchange, known.n
            self.filed.exchanges_known += 1
            exchanges.name(self._db, record, message.keys)
            self._complete(exchange, message)
            self._refresh(known, text, 0)
        exchanges.see(self._db, record, self._origin.file, self._origin.content, message.offset)
        self._open = exchange

    def _complete(self, exchange: int, message: Message) -> None:
        """A later carrier of a prompt may tell its folder; one that was retired is back."""
        if message.cwd:
            self._session_of(message)
        self._db.execute(
            "UPDATE exchanges SET cwd = COALESCE(cwd, ?), retired = NULL WHERE n = ?",
            (message.cwd, exchange),
        )

    def _meet(self, message: Message, text: str, omitted: int, known: Known) -> None:
        """A record that is in the palace stays where it is, unless a prompt can take it."""
        exchanges.name(self._db, known.n, message.keys)
        shorter = exchanges.find(self._db, message.grows) if message.grows else None
        if shorter is not None and shorter.n != known.n and shorter.role is known.role:
            self._streams.absorb(known, shorter)
        if message.rule == "subagent":
            self._subagent = known.exchange
        else:
            self._open = self._open or known.exchange
            home, target = known.exchange, self._target(message)
            if target is not None and self._is_headless(home) and not self._is_headless(target):
                self._take(home, by=target)
                known = exchanges.find(self._db, message.keys[0]) or known
        self._refresh(known, text, omitted)

    def _add(self, message: Message, text: str, omitted: int) -> None:
        if message.grows is not None:
            shorter = exchanges.find(self._db, message.grows)
            if shorter is not None:
                exchanges.name(self._db, shorter.n, message.keys)
                self._streams.replace_text(shorter, text, omitted, self._origin.parser)
                return
        call = exchanges.find(self._db, message.call) if message.call else None
        exchange = self._target(message)
        if message.rule == "subagent":
            exchange = None if message.kind == "task" else _stored(self._subagent)
            exchange = exchange or self._new_exchange(message, headless=True)
            self._subagent = exchange
        elif exchange is None:
            exchange = self._new_exchange(message, headless=True)
            self._open = self._open or exchange
        self._append(exchange, message, text, omitted, call=call.n if call else None)

    def _target(self, message: Message) -> int | None:
        """The exchange that a record belongs to: its call's, else the open one; None: neither.

        A result whose call is nowhere answers to no prompt that is known here.
        """
        call = exchanges.find(self._db, message.call) if message.call else None
        if call is not None:
            return call.exchange
        here = _stored(self._open)
        if message.role is Role.RESULT and here and not self._is_headless(here):
            return None
        return here

    def _refresh(self, known: Known, text: str, omitted: int) -> None:
        """Under a newer parser a text is updated in place; so is one of which more is kept now."""
        parser = self._origin.parser
        if parser > known.parser or (parser == known.parser and omitted < known.omitted):
            self._streams.replace_text(known, text, omitted, parser)

    def _withdraw(self, message: Message) -> None:
        """Words that were taken back, or an answer that was abandoned."""
        if message.role is Role.RETRACTED:
            exchanges.withdraw(self._db, message.keys)
        if message.role is Role.RETRACTED and self._tombstones.hold(message.keys):
            self._gone_at = message.offset
        known = self._find(message)
        if known is None:
            self._withdraw_forgotten(message)
            return
        if message.role is Role.SUPERSEDED and known.role is Role.ASSISTANT:
            exchanges.set_role(self._db, known.n, Role.ALTERNATE)
        if message.role is Role.RETRACTED and known.role is Role.HUMAN:
            to = _stored(self._open)
            if to == known.exchange:
                to = exchanges.prompt_before(self._db, *exchanges.place_of(self._db, to))
            self._retire(known.exchange, to, "taken back by its author")

    def _withdraw_forgotten(self, message: Message) -> None:
        """What follows a prompt that was taken back goes on with the prompt before it."""
        is_open = isinstance(self._open, Forgotten) and self._open.key in message.keys
        if is_open and message.role is Role.RETRACTED:
            origin = self._origin
            self._open = exchanges.prompt_before(
                self._db, origin.file, origin.content, message.offset
            )

    def _find(self, message: Message) -> Known | None:
        """The record of these keys; two prompts that turn out to be one become one."""
        found = {k.n: k for key in message.keys if (k := exchanges.find(self._db, key))}
        if not found:
            return None
        first, *others = (found[n] for n in sorted(found))
        for other in others:
            if first.role is Role.HUMAN and other.role is Role.HUMAN:
                self._streams.merge(first, other)
                if self._open == other.exchange:
                    self._open = first.exchange
        return first

    # --- exchanges ------------------------------------------------------------------------------

    def _append(
        self, exchange: int, message: Message, text: str, omitted: int, *, call: int | None = None
    ) -> int:
        return self._streams.append(
            exchange, message.role, text,
            keys=message.keys, kind=message.kind, omitted=omitted, said_at=message.at,
            parser=self._origin.parser, call=call,
        )  # fmt: skip

    def _new_exchange(self, message: Message, *, headless: bool) -> int:
        session, wing = self._session_of(message)
        is_command = message.kind in ("command", "bash")
        exchange = exchanges.create(
            self._db,
            message.keys[0].hex(),
            session=session,
            wing=wing,
            importance=_IMPORTANCE_OF_COMMANDS if is_command else _IMPORTANCE,
            headless=headless,
            cwd=message.cwd,
            at=message.at,
            place=(self._origin.file, self._origin.content, message.offset),
        )
        self._headless[exchange] = headless
        return exchange

    def _session_of(self, message: Message) -> tuple[int, int | None]:
        """The session that a line names, where that is known; else the file's own."""
        source, session = self._origin.source, message.session
        named = message.named
        if named and named != session and places.session(self._db, source, named) is not None:
            session = named
        return places.open_session(self._db, source, session, message.cwd, self._wing_for)

    def _wing_for(self, folder: str) -> int:
        return wing_for(self._db, self._config, folder)

    def _end_of(self, exchange_id: str | None) -> End:
        """What a state names: an exchange, one that was forgotten meanwhile, or none."""
        exchange = exchanges.numbered(self._db, exchange_id) if exchange_id else None
        return exchange or self._tombstones.end_of(exchange_id)

    def _is_headless(self, exchange: int) -> bool:
        if exchange not in self._headless:
            self._headless[exchange] = exchanges.is_headless(self._db, exchange)
        return self._headless[exchange]

    def _take(self, headless: int, *, by: int) -> None:
        """A prompt takes the answers that were stored without it."""
        self._streams.move(self._streams.load(headless), by)
        self._streams.remove(headless)
        if self._open == headless:
            self._open = by

    # --- prompts that were none -----------------------------------------------------------------

    def retire_passed(self, begin: int, end: int, prompts: frozenset[int]) -> None:
        """Retire what an older parser took for prompts between two offsets, and this one did not.

        `prompts` are the offsets of the prompts that this parser did find there, kept or not.
        """
        origin = self._origin
        for offset, exchange in exchanges.prompts_read_by_older(
            self._db, origin.file, origin.content, origin.parser, begin, end
        ):
            if offset not in prompts:
                before = exchanges.prompt_before(self._db, origin.file, origin.content, offset)
                self._retire(exchange, before, "no prompt, as a newer parser reads it")

    def _retire(self, exchange: int, to: int | None, reason: str) -> None:
        """Out of search and export, kept with the reason; its answers go to the prompt before."""
        stored = self._streams.load(exchange)
        exchanges.retire(self._db, exchange, reason)
        self.filed.left_out["retired"] += 1
        answers = [record for record in stored if record.role is not Role.HUMAN]
        if answers and to is None:
            to = self._headless_for(exchange, answers[0])
        if answers and to is not None and to != exchange:
            self._streams.move(answers, to)
            self._streams.rebuild(exchange, [r for r in stored if r.role is Role.HUMAN])
        if self._open == exchange:
            self._open = to

    def _headless_for(self, exchange: int, first: Stored) -> int:
        key = exchanges.keys_of(self._db, first.n)[0]
        made = exchanges.create_beside(self._db, exchange, key.hex())
        self._headless[made] = True
        return made


def _stored(end: End) -> int | None:
    """The exchange that can take a record, None where there is none or it was forgotten."""
    return None if isinstance(end, Forgotten) else end
