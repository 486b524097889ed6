// Conversations in the browser's own storage, one entry each, so that two tabs do not overwrite each other's.
// Text alone: what is read back is checked, since anything on this address may have written it.
"use strict";
const chats = (() => {
  const PREFIX = "mrrope.chat.", MOST = 50, LONGEST = 4e6;  // browsers keep about 5 million characters
  const mode = document.body.dataset.mode;
  const text = (value, longest = Infinity) => typeof value === "string" ? value.slice(0, longest) : "";
  const count = value => Number.isFinite(value) && value >= 0 ? value : 0;

  // A browser may forbid storage: then the page works and forgets.
  const attempt = (act, otherwise = null) => {
    try {
      return act();
    } catch {
      return otherwise;
    }
  };
  const read = key => attempt(() => JSON.parse(localStorage.getItem(key)));

  // {id, time, title, system, said}; said: [{role, content, reasoning, end, length, files: [{name, text, tokens}]}]
  function checked(found) {
    if (!found || typeof found !== "object" || found.mode !== mode || !Array.isArray(found.said)) return null;
    const said = found.said.filter(m => m && (m.role === "user" || m.role === "assistant")).map(m => ({
      role: m.role, content: text(m.content), reasoning: text(m.reasoning), end: text(m.end, 20), length: count(m.length),
      files: (Array.isArray(m.files) ? m.files : []).map(f => ({ name: text(f?.name, 300), text: text(f?.text), tokens: count(f?.tokens) }))
    }));
    return { id: text(found.id, 80), time: count(found.time), title: text(found.title, 80), system: text(found.system), said };
  }

  const fresh = system => ({ id: Date.now().toString(36) + Math.random().toString(36).slice(2, 8), time: Date.now(), title: "",
                             system, said: [] });

  // Titles and times, the newest first.
  function list() {
    return attempt(() => Object.keys(localStorage), []).filter(key => key.startsWith(PREFIX))
      .map(key => ({ key, chat: read(key) })).filter(({ chat }) => chat && chat.mode === mode)
      .map(({ key, chat }) => ({ id: key.slice(PREFIX.length), time: count(chat.time), title: text(chat.title, 80) }))
      .sort((a, b) => b.time - a.time);
  }

  function open(id) {
    const chat = checked(read(PREFIX + id));
    return chat && { ...chat, id };
  }

  function remove(id) { attempt(() => localStorage.removeItem(PREFIX + id)); }

  // False if it cannot be kept. The oldest conversations make room for this one.
  function save(chat) {
    const record = JSON.stringify({ ...chat, mode });
    if (record.length > LONGEST) return false;  // before others are removed for nothing
    const others = list().filter(c => c.id !== chat.id);
    while (others.length >= MOST) remove(others.pop().id);
    while (!attempt(() => (localStorage.setItem(PREFIX + chat.id, record), true))) {
      if (!others.length) return false;
      remove(others.pop().id);
    }
    return true;
  }

  // Small things that last: settings for all tabs, the conversation of this one.
  const keep = (name, value, forTab = false) =>
    attempt(() => (forTab ? sessionStorage : localStorage).setItem("mrrope." + name, JSON.stringify(value)));
  const kept = (name, forTab = false) =>
    attempt(() => JSON.parse((forTab ? sessionStorage : localStorage).getItem("mrrope." + name)));

  return { list, open, save, remove, fresh, keep, kept, attempt };
})();
