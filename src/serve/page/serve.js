// The conversation: streams answers, and shows the place on the ladder while they arrive.
"use strict";
(() => {
  const { make } = markdown, { number } = ladder;
  const at = id => document.getElementById(id);
  const body = document.body.dataset, root = document.documentElement;
  const talks = body.mode === "chat";  // otherwise the model continues one text
  const log = at("log"), input = at("input"), send = at("send"), stop = at("stop");
  const LARGEST = 32 << 20;   // bytes of a file: no server takes more
  const PREVIEW = 20000;      // characters of a file that are shown
  const FOLDED = 3000, LINES = 40;  // longer messages are folded
  let chat;                   // the conversation on the page
  let views = [];             // one for each message of it
  let files = [];             // to be sent with the next message
  let running = null;         // AbortController of the running answer
  let trouble = null;         // node of the last error

  const button = (text, act, label = text, kind = "") => {
    const node = make("button", kind, text, { type: "button", "aria-label": label });
    node.addEventListener("click", act);
    return node;
  };
  // Hides rows that have no value yet.
  const figure = (id, text) => {
    at(id).textContent = text;
    at(id).closest("div").hidden = !text;
  };
  // A box is as high as its text; the style sheet says how high at most.
  const fit = area => {
    area.style.height = "auto";
    area.style.height = area.scrollHeight + area.offsetHeight - area.clientHeight + "px";
  };
  const isSent = event => event.key === "Enter" && !event.shiftKey && !event.isComposing;
  const say = text => { at("spoken").textContent = text; };
  const duration = s => s < 60 ? Math.ceil(s) + " s" : Math.floor(s / 60) + " min " + Math.round(s % 60) + " s";
  const atEnd = () => log.scrollHeight - log.scrollTop - log.clientHeight < 40;
  const toEnd = () => { log.scrollTop = log.scrollHeight; };
  // The end stays in view when the window or the parts below become larger or smaller.
  let following = true;
  log.addEventListener("scroll", () => { following = atEnd(); });
  new ResizeObserver(() => { if (following) toEnd(); }).observe(log);

  // ---- Messages

  async function copy(text, node) {
    let done = true;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // Pages from another machine without TLS have no clipboard; selecting and copying works there.
      const area = make("textarea", "hidden");
      area.value = text;
      document.body.append(area);
      area.select();
      done = document.execCommand("copy");
      area.remove();
      node.focus();
    }
    const before = node.dataset.text ??= node.textContent;
    node.textContent = done ? "Copied" : "Not copied";
    say(done ? "Copied" : "The browser does not allow copying");
    setTimeout(() => { node.textContent = before; }, 1500);
  }

  function fileNode({ name, text, tokens }) {
    const rest = text.length - PREVIEW, more = rest > 0 ? "\n... and " + number(rest) + " more characters" : "";
    return make("details", "file", [make("summary", "", name + ", " + number(tokens) + " tokens"),
                                    make("pre", "", text.slice(0, PREVIEW) + more, { tabindex: 0 })]);
  }

  const endings = {
    length: m => m.length >= ladder.context ? "Cut off: the context of " + number(ladder.context) + " tokens is full."
                                            : "Cut off: the answer reached its longest length (Settings).",
    stopped: () => "Stopped.",
    broken: () => "The answer ended with an error."
  };

  function viewOf(message) {
    const user = message.role === "user";
    const node = make("article", "said " + (user ? "you" : "model"), make("h3", "who", user ? "You" : "Model"));
    const text = make("div", talks && !user ? "text" : "text plain");
    const note = make("p", "note"), actions = make("div", "actions");
    let thinking = null;
    for (const file of message.files) node.append(fileNode(file));
    node.append(text, note, actions);

    function grow(done) {
      if (message.reasoning) {
        if (!thinking) {
          thinking = make("details", "thinking", [make("summary"), make("div", "plain")]);
          text.before(thinking);
        }
        thinking.firstChild.textContent = done || message.content ? "Reasoning" : "Reasoning ...";
        thinking.lastChild.textContent = message.reasoning;
      }
      if (talks && !user) markdown.draw(text, message.content);
      else text.textContent = message.content;
      note.textContent = done ? endings[message.end]?.(message) ?? "" : "";
    }
    return { node, message, text, actions, grow };
  }

  function add(message) {
    const view = viewOf(message);
    views.push(view);
    log.append(view.node);
    return view;
  }

  const isLong = text => text.length > FOLDED || text.split("\n").length > LINES;

  // What can be done with each message depends on which one is the last, and on whether an answer is running.
  function showActions() {
    views.forEach((view, i) => {
      const { message, actions } = view, last = i === views.length - 1, model = message.role === "assistant";
      const what = model ? "the answer" : "your message";
      const buttons = model ? [button("Copy", event => copy(message.content, event.target), "Copy the answer")] : [];
      // The last answer is being read.
      const folds = isLong(message.content) && !(last && model);
      view.text.classList.toggle("folded", folds && !view.whole);
      if (folds) {
        buttons.unshift(button(view.whole ? "Show less" : "Show all", () => {
          view.whole = !view.whole;
          showActions();
          actions.firstChild.focus({ preventScroll: true });
          view.node.scrollIntoView({ block: "nearest" });
        }, (view.whole ? "Show less of " : "Show all of ") + what));
      }
      if (!running) {
        buttons.push(button("Edit", () => edit(i), "Edit " + what));
        if (last && model) buttons.push(button("Regenerate", () => { cutTo(i); answer(); }, "Regenerate the answer"));
        if (last && !model) buttons.push(button("Ask again", () => answer()));
        // Reasoning is not sent back, so an answer that had some cannot go on from where it was.
        if (last && model && !message.reasoning && ["length", "stopped", "broken"].includes(message.end) && message.length < ladder.context) {
          buttons.push(button("Continue", () => answer(true), "Continue the answer"));
        }
      }
      actions.replaceChildren(...buttons);
    });
  }

  // Keeps the messages before this one.
  function cutTo(index) {
    for (const view of views.splice(index)) view.node.remove();
    chat.said.length = index;
    showPlace();
  }

  function edit(index) {
    const { message, text, actions, grow } = views[index], user = message.role === "user";
    const area = make("textarea", "editor", [], { "aria-label": user ? "Your message" : "The answer" });
    area.value = message.content;
    const back = () => {
      area.remove();
      text.hidden = false;
      showActions();
      [...actions.children].find(b => b.textContent === "Edit")?.focus();
    };
    const save = () => {
      if (user && !area.value.trim() && !message.files.length) return;
      message.content = area.value;
      grow(true);
      back();
      if (!user) return keep();
      cutTo(index + 1);
      answer();
      input.focus();
    };
    area.addEventListener("keydown", event => {
      const accepts = user && isSent(event);
      if (!accepts && event.key !== "Escape") return;
      event.preventDefault();
      event.stopPropagation();
      if (accepts) save();
      else back();
    });
    const name = user ? "Send from here" : "Save";
    actions.replaceChildren(button(name, save, name, "main"), button("Cancel", back));
    text.hidden = true;
    text.after(area);
    fit(area);
    area.focus();
  }

  function showTrouble(message) {
    trouble?.remove();
    trouble = make("article", "said trouble", [make("h3", "who", "Error"), make("div", "text plain", message)], { role: "alert" });
    log.append(trouble);
    toEnd();
  }

  // ---- The conversation

  const lengthNow = () => chat.said.findLast(m => m.length > 0)?.length ?? 0;
  const showPlace = (planned = 0) => ladder.show(ladder.place(lengthNow()), planned);

  function keep() {
    const asked = chat.said.find(m => m.role === "user");
    chat.title = asked ? (asked.content.trim() || asked.files[0]?.name || "").replace(/(.{60}).+/s, "$1...") : "";
    chat.time = Date.now();
    if (chat.said.length && !chats.save(chat)) say("This conversation is too long for the browser to keep over a reload");
    listChats();
  }

  function listChats() {
    const others = chats.list();
    if (!others.some(c => c.id === chat.id)) others.unshift(chat);
    at("chats").replaceChildren(...others.map(({ id, title }) =>
      make("option", "", title.replace(/\s+/g, " ") || "New conversation", { value: id })));
    at("chats").value = chat.id;
    at("delete").hidden = others.length === 1 && !chat.said.length;
  }

  function open(next) {
    if (running) running.abort();
    chat = next;
    views = [];
    log.replaceChildren();
    for (const message of chat.said) add(message).grow(true);
    at("system").value = chat.system;
    for (const id of ["speed", "read"]) figure(id, "");
    chats.keep("current", chat.id, true);
    showActions();
    showPlace();
    showSettings();
    listChats();
    forecast();
    toEnd();
  }

  const fresh = () => open(chats.fresh(talks ? String(chats.kept("settings")?.system ?? "") : ""));

  const contentOf = ({ content, files: sent }) =>
    sent.map(f => talks ? "File " + f.name + ":\n\n" + f.text + "\n\n" : f.text).join("") + content;

  function requestOf(goesOn) {
    const request = {
      model: body.model, stream: true, stream_options: { include_usage: true }, return_progress: true,
      temperature: Number(at("temperature").value), max_tokens: Math.floor(Number(at("tokens").value)) || -1
    };
    if (!talks) return { ...request, prompt: chat.said.map(contentOf).join("") };
    request.messages = chat.said.map(m => ({ role: m.role, content: contentOf(m) }));
    if (chat.system.trim()) request.messages.unshift({ role: "system", content: chat.system });
    if (goesOn) request.continue_final_message = true;
    return request;
  }

  async function post(path, request, signal) {
    const headers = { "Content-Type": "application/json" };
    if (at("key").value) headers.Authorization = "Bearer " + at("key").value;
    const response = await fetch(path, { method: "POST", headers, body: JSON.stringify(request), signal });
    if (response.ok) return response;
    if (response.status === 401) {
      at("keyrow").hidden = false;
      at("key").focus();
    }
    const reply = await response.json().catch(() => null);
    throw new Error(reply?.error?.message ?? "the server answered with status " + response.status);
  }

  // Events of a stream, one by one. Comments in between keep the connection alive.
  async function* events(response) {
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let held = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) throw new Error("the connection ended before the answer was complete");
      held += value;
      for (let end; (end = held.indexOf("\n\n")) >= 0; held = held.slice(end + 2)) {
        const data = held.slice(0, end);
        if (data === "data: [DONE]") return;
        if (data.startsWith("data: ")) yield JSON.parse(data.slice(6));
      }
    }
  }

  // What the server tells while it reads a prompt. Returns the seconds left.
  function showProgress({ total, cache, processed, time_ms: time, seconds_left: left }) {
    const bar = at("progress"), rate = time > 0 ? 1000 * (processed - cache) / time : 0;
    bar.max = Math.max(1, total - cache);
    bar.value = processed - cache;
    at("readtext").textContent = "Reading the prompt: " + number(processed - cache) + " of " + number(total - cache) + " tokens" +
      (cache ? " (and " + number(cache) + " cached)" : "") + (rate > 0 ? ", " + number(Math.round(rate)) + " tokens/s" : "") +
      (rate > 0 ? ", " + duration(left) + " left" : "");
    return left;
  }

  function setRunning(controller) {
    running = controller;
    const asked = document.activeElement === send;
    send.disabled = send.hidden = running !== null;
    stop.hidden = running === null;
    if (asked && running) stop.focus();
    log.setAttribute("aria-busy", String(running !== null));  // the answer is read out once it is complete
    showActions();
  }

  async function answer(goesOn = false) {
    const mine = chat;
    const request = requestOf(goesOn);
    const message = goesOn ? mine.said.at(-1) : { role: "assistant", content: "", reasoning: "", end: "", length: 0, files: [] };
    let view = goesOn ? views.at(-1) : null;
    let first = 0, from = 0, told = false, timer = 0, cost = 0;
    trouble?.remove();
    setRunning(new AbortController());
    const { signal } = running;
    toEnd();
    at("progress").removeAttribute("value");
    at("readtext").textContent = "Waiting for the server.";
    // A short prompt is read before anyone could look at its progress.
    const wait = setTimeout(() => { at("reading").hidden = false; }, 250);

    const draw = () => {
      timer = 0;
      if (chat !== mine) return;
      const follow = atEnd(), before = performance.now();
      view.grow(false);
      if (follow) toEnd();
      cost = performance.now() - before;
    };
    const begin = () => {
      clearTimeout(wait);
      at("reading").hidden = true;
      if (view) return;
      mine.said.push(message);
      view = add(message);
    };
    const take = event => {
      if (event.prompt_progress) {
        const left = showProgress(event.prompt_progress), { total, cache } = event.prompt_progress;
        if (!told && left > 5) say("Reading a prompt of " + number(total - cache) + " tokens, about " + duration(left) + " left");
        told ||= left > 5;
        return ladder.show(event.mrrope);
      }
      const choice = event.choices?.[0];
      const text = (talks ? choice?.delta?.content : choice?.text) ?? "", thought = choice?.delta?.reasoning_content ?? "";
      if (event.mrrope) message.length = event.mrrope.length;
      if (text || thought) {
        begin();
        message.content += text;
        message.reasoning += thought;
        // Drawing takes a tenth of the time at most, however long a paragraph becomes.
        if (!timer) timer = setTimeout(draw, Math.max(16, 10 * cost));
      }
      if (choice?.finish_reason) message.end = choice.finish_reason;
      if (event.mrrope) {
        ladder.show(event.mrrope);
        if (!first) { first = performance.now(); from = event.mrrope.length; }
        else if (event.mrrope.length > from) {
          figure("speed", (1000 * (event.mrrope.length - from) / (performance.now() - first)).toFixed(1));
        }
      }
      if (event.usage) {
        const { prompt_tokens: all, prompt_tokens_details: { cached_tokens: kept }, completion_tokens: written } = event.usage;
        const { read_seconds: r, write_seconds: w } = event.mrrope;
        figure("read", number(all - kept) + " new tokens, " + number(kept) + " cached, in " + r.toFixed(2) + " s");
        if (written > 1 && w > 0) figure("speed", ((written - 1) / w).toFixed(1));
      }
    };

    try {
      message.end = "";
      const response = await post(talks ? "v1/chat/completions" : "v1/completions", request, signal);
      for await (const event of events(response)) {
        if (event.error) throw new Error(event.error.message);
        if (chat === mine) take(event);
      }
      say(message.end === "length" ? "The answer was cut off at its longest length" : "The answer is complete");
    } catch (error) {
      message.end = signal.aborted ? "stopped" : "broken";
      if (signal.aborted) say("Stopped");
      else if (chat === mine) showTrouble(error instanceof TypeError ? "The server cannot be reached: is it still running?" : error.message);
    }
    clearTimeout(wait);
    clearTimeout(timer);
    at("reading").hidden = true;
    const held = document.activeElement, follow = atEnd();
    setRunning(null);
    if (chat !== mine) return void chats.save(mine);
    view?.grow(true);
    if (trouble?.isConnected) log.append(trouble);
    showActions();
    if (follow) toEnd();
    keep();
    forecast();
    // Not if someone reads or selects elsewhere, and not where that opens a keyboard on the screen.
    const free = [document.body, stop, send, log].includes(held) || !held.isConnected;
    if (free && !matchMedia("(pointer: coarse)").matches) input.focus({ preventScroll: true });
  }

  // ---- Files and the draft

  const tokensOf = async text =>
    (await (await post("tokenize", { content: text, add_special: false })).json()).tokens.length;

  async function textOf(file) {
    if (file.size > LARGEST) throw new Error("it has " + number(file.size) + " bytes, more than a server takes");
    const bytes = await file.arrayBuffer();
    const text = chats.attempt(() => new TextDecoder("utf-8", { fatal: true }).decode(bytes), "\0");
    if (text.includes("\0")) throw new Error("it is not a text file in UTF-8");
    if (!text) throw new Error("it is empty");
    return text;
  }

  async function addFiles(list) {
    for (const file of list) {
      at("draft").textContent = "Counting the tokens of " + file.name;
      try {
        const text = await textOf(file);
        files.push({ name: file.name, text, tokens: await tokensOf(text) });
      } catch (error) {
        showTrouble(file.name + " was not added: " + error.message);
      }
      showFiles();
    }
    input.focus();
  }

  function showFiles() {
    at("files").replaceChildren(...files.map((file, i) => make("li", "", [
      make("span", "", file.name + ": " + number(file.tokens) + " tokens"),
      button("Remove", () => {
        files.splice(i, 1);
        showFiles();
        input.focus();
      }, "Remove " + file.name)])));
    forecast();
  }

  // What sending would take, once there is something worth counting.
  let counting = 0;
  async function forecast() {
    const mine = ++counting, typed = input.value;
    const show = (text, planned, fits = true) => {
      at("draft").textContent = text;
      at("draft").classList.toggle("bad", !fits);
      if (!running) showPlace(planned);
    };
    if (!files.length && typed.length < 500) return show("", 0);
    await new Promise(later => setTimeout(later, 300));
    if (mine !== counting) return;
    const rest = (chat.said.length ? "" : chat.system) + typed;
    let tokens = files.reduce((sum, f) => sum + f.tokens, 0);
    try {
      if (rest) tokens += await tokensOf(rest);
    } catch (error) {
      return mine === counting && show("The tokens cannot be counted: " + error.message, 0, false);
    }
    if (mine !== counting) return;
    const { text, total, fits } = ladder.forecast(tokens, lengthNow());
    show(text + ".", total, fits);
  }

  // ---- Controls

  const showSettings = () => { at("told").textContent = talks && chat.system.trim() ? ": with a system prompt" : ""; };
  const keepSettings = () =>
    chats.keep("settings", { temperature: at("temperature").value, tokens: at("tokens").value, system: chat.system });

  at("ask").addEventListener("submit", event => {
    event.preventDefault();
    const text = input.value;
    if (running || (!text.trim() && !files.length && (talks || !chat.said.length))) return;
    if (text || files.length) {
      const message = { role: "user", content: text, reasoning: "", end: "", length: 0, files };
      chat.said.push(message);
      add(message).grow(true);
    }
    files = [];
    input.value = "";
    fit(input);
    showFiles();
    keep();
    answer();
  });
  // A setting that is out of range must be seen to be mended.
  at("settings").addEventListener("invalid", () => { at("settings").open = true; }, true);
  input.addEventListener("keydown", event => {
    if (!isSent(event)) return;
    event.preventDefault();
    at("ask").requestSubmit();
  });
  input.addEventListener("input", forecast);
  document.addEventListener("input", event => { if (event.target.matches("textarea")) fit(event.target); });
  addEventListener("resize", () => fit(input));
  at("settings").addEventListener("toggle", () => { if (at("settings").open) fit(at("system")); });
  document.addEventListener("keydown", event => { if (event.key === "Escape") running?.abort(); });
  stop.addEventListener("click", () => running?.abort());
  at("fresh").addEventListener("click", () => {
    fresh();
    input.focus();
  });
  at("chats").addEventListener("change", event => open(chats.open(event.target.value) ?? chats.fresh("")));
  const doubt = at("delete");
  doubt.addEventListener("click", () => {
    const asks = doubt.textContent === "Delete";
    doubt.textContent = asks ? "Really delete?" : "Delete";
    if (asks) return setTimeout(() => { doubt.textContent = "Delete"; }, 4000);
    const gone = chat;
    fresh();
    chats.remove(gone.id);
    const next = chats.list()[0];
    if (next) open(chats.open(next.id) ?? chat);
    else listChats();
    input.focus();
  });
  log.addEventListener("click", event => {
    const node = event.target.closest(".codebar .copy");
    if (node) copy(node.closest(".code").querySelector("code").textContent, node);
  });

  at("add").addEventListener("click", () => at("file").click());
  at("file").addEventListener("change", () => {
    addFiles([...at("file").files]);
    at("file").value = "";
  });
  const carries = event => [...event.dataTransfer?.types ?? []].includes("Files");
  document.addEventListener("dragover", event => {
    if (!carries(event)) return;
    event.preventDefault();
    at("talk").classList.add("dropping");
  });
  document.addEventListener("dragleave", event => { if (!event.relatedTarget) at("talk").classList.remove("dropping"); });
  document.addEventListener("drop", event => {
    at("talk").classList.remove("dropping");
    if (!carries(event)) return;
    event.preventDefault();
    addFiles([...event.dataTransfer.files]);
  });

  at("systemrow").hidden = !talks;
  at("system").addEventListener("input", () => {
    chat.system = at("system").value;
    showSettings();
    keepSettings();
    if (chat.said.length) chats.save(chat);
  });
  const settings = chats.kept("settings");
  for (const id of ["temperature", "tokens"]) {
    at(id).addEventListener("change", keepSettings);
    if (settings?.[id] && Number.isFinite(Number(settings[id]))) at(id).value = settings[id];
  }
  if (Number(at("tokens").value) > ladder.context) at("tokens").value = ladder.context;

  const theme = chats.kept("theme");
  if (theme === "light" || theme === "dark") {
    root.dataset.theme = theme;
    at("theme").textContent = "Theme: " + theme;
  }
  at("theme").addEventListener("click", () => chats.keep("theme", root.dataset.theme ?? "auto"));

  // What was written so far is kept if the page goes while an answer is running.
  addEventListener("pagehide", () => {
    const last = chat.said.at(-1);
    if (running && last?.role === "assistant") last.end = "stopped";
    if (chat.said.length) chats.save(chat);
  });

  const id = chats.kept("current", true) ?? chats.list()[0]?.id;
  const found = typeof id === "string" ? chats.open(id) : null;
  if (found) open(found);
  else fresh();
  fit(input);  // a browser may have kept what was typed
})();
