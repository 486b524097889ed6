// Conversations in the browser's own storage, one entry each, so that two tabs do not overwrite each other's.
// Text alone: what is read back is checked, since anything on this address may have written it.
"use strict";
const chats = (() => {
  const PREFIX = "mrrope.chat.", MOST = 50, LONGEST = 4e6;  // browsers keep about 5 million characters
  const mode = document.body.dataset.mode;
  const text = (value, longest = Infinity) => typeof value === "string" ? value.slice(0, longest) : "";
  const count = value => Number.isFinite(value) && value >= 0 ? value : 0;

  function read(key) {
    try {
      return JSON.parse(localStorage.getItem(key));
    } catch {
      return null;
    }
  }

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
    const found = [];
    for (let i = 0; i < storage.length; ++i) {
      const key = storage.key(i);
      if (!key.startsWith(PREFIX)) continue;
      const chat = read(key);
      if (chat && chat.mode === mode) found.push({ id: key.slice(PREFIX.length), time: count(chat.time), title: text(chat.title, 80) });
    }
    return found.sort((a, b) => b.time - a.time);
  }

  function open(id) {
    const chat = checked(read(PREFIX + id));
    return chat && { ...chat, id };
  }

  function remove(id) { storage.removeItem(PREFIX + id); }

  // False if it cannot be kept. The oldest conversations make room for this one.
  function save(chat) {
    const record = JSON.stringify({ ...chat, mode });
    if (record.length > LONGEST) return false;  // before others are removed for nothing
    const others = list().filter(c => c.id !== chat.id);
    while (others.length >= MOST) remove(others.pop().id);
    for (;;) {
      try {
        storage.setItem(PREFIX + chat.id, record);
        return storage.kept;
      } catch {
        if (!others.length) return false;
        remove(others.pop().id);
      }
    }
  }

  // A browser may forbid storage: then the page works and forgets.
  const storage = (() => {
    try {
      localStorage.getItem(PREFIX);
      return {
        kept: true, get length() { return localStorage.length; }, key: i => localStorage.key(i),
        setItem: (k, v) => localStorage.setItem(k, v), removeItem: k => localStorage.removeItem(k)
      };
    } catch {
      return { kept: false, length: 0, key: () => "", setItem() {}, removeItem() {} };
    }
  })();

  // Small things that last: settings for all tabs, the conversation of this one.
  function keep(name, value, forTab = false) {
    try {
      (forTab ? sessionStorage : localStorage).setItem("mrrope." + name, JSON.stringify(value));
    } catch { /* forgotten */ }
  }
  function kept(name, forTab = false) {
    try {
      return JSON.parse((forTab ? sessionStorage : localStorage).getItem("mrrope." + name));
    } catch {
      return null;
    }
  }

  return { list, open, save, remove, fresh, keep, kept };
})();
