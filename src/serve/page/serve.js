// The conversation: streams answers, and shows the place on the ladder while they arrive.
"use strict";
(() => {
  const at = id => document.getElementById(id);
  const body = document.body.dataset;
  const chat = body.mode === "chat";
  const context = Number(body.context);
  const log = at("log"), input = at("input"), send = at("send"), stop = at("stop");
  const start = { length: 0, rung: 0, scale: Number(body.scale) };
  let said = [];        // {role, content}; without a chat template, the pieces of one text
  let running = null;   // AbortController of the running answer

  for (const end of body.ends.split(",").map(Number).slice(0, -1)) {
    const mark = document.createElement("i");
    mark.style.left = 100 * end / context + "%";
    at("bar").append(mark);
  }

  function show(role, text) {
    const block = document.createElement("p");
    block.className = "said " + { user: "you", assistant: "model", trouble: "trouble" }[role];
    const who = document.createElement("b");
    who.textContent = { user: "You", assistant: "Model", trouble: "Error" }[role];
    const content = document.createElement("span");
    content.textContent = text;
    block.append(who, content);
    log.append(block);
    log.scrollTop = log.scrollHeight;
    return content;
  }

  function showPlace(where) {
    at("length").textContent = where.length;
    at("rung").textContent = where.rung + 1;
    at("scale").textContent = Number(where.scale.toPrecision(4));
    at("fill").style.width = Math.min(100, 100 * where.length / context) + "%";
    at("bar").setAttribute("aria-label", where.length + " of " + context + " tokens, rung " + (where.rung + 1));
    for (const row of at("ladder").querySelectorAll("tbody tr")) {
      const here = Number(row.dataset.rung) === where.rung;
      if (here && !row.classList.contains("here")) row.scrollIntoView({ block: "nearest" });
      row.classList.toggle("here", here);
    }
  }

  const seconds = s => s < 60 ? Math.ceil(s) + " s" : Math.floor(s / 60) + " min " + Math.ceil(s % 60) + " s";

  // Events of a stream, one by one. Comments with an object tell how far a long prompt is read.
  async function* events(response) {
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let held = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      held += value;
      for (let end; (end = held.indexOf("\n\n")) >= 0; held = held.slice(end + 2)) {
        const data = held.slice(0, end).replace(/^(data)?: /, "");
        if (data.startsWith("{")) yield JSON.parse(data);
      }
    }
  }

  async function answer() {
    const request = {
      model: body.model, stream: true, stream_options: { include_usage: true },
      temperature: Number(at("temperature").value), max_tokens: Number(at("tokens").value)
    };
    if (chat) Object.assign(request, { messages: said, reasoning_format: "none" });
    else request.prompt = said.map(m => m.content).join("");
    const headers = { "Content-Type": "application/json" };
    if (at("key").value) headers.Authorization = "Bearer " + at("key").value;
    running = new AbortController();
    send.disabled = true;
    stop.disabled = false;
    const message = { role: "assistant", content: "" };
    let place = null, first = 0, from = 0;
    try {
      const response = await fetch(chat ? "v1/chat/completions" : "v1/completions",
        { method: "POST", headers, body: JSON.stringify(request), signal: running.signal });
      if (!response.ok) {
        if (response.status === 401) { at("keyrow").hidden = false; at("key").focus(); }
        throw new Error((await response.json()).error.message);
      }
      for await (const event of events(response)) {
        if (event.error) throw new Error(event.error.message);
        if (event.mrrope && event.mrrope.prefill) {
          const { read, total, tokens_per_second: rate, seconds_left: left } = event.mrrope.prefill;
          showPlace(event.mrrope);
          at("read").textContent = read + " of " + total + " tokens, " + rate.toFixed(0) + " tokens/s, " + seconds(left) + " left";
          continue;
        }
        const choice = event.choices[0];
        const text = choice ? (chat ? choice.delta.content : choice.text) : "";
        if (text) {
          if (!place) place = show("assistant", "");
          const follow = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
          message.content += text;
          place.append(text);
          if (follow) log.scrollTop = log.scrollHeight;
        }
        if (event.mrrope) {
          showPlace(event.mrrope);
          if (!first) { first = performance.now(); from = event.mrrope.length; }
          else if (event.mrrope.length > from) {
            at("speed").textContent = (1000 * (event.mrrope.length - from) / (performance.now() - first)).toFixed(1);
          }
        }
        if (event.usage) {
          const { prompt_tokens: all, prompt_tokens_details: { cached_tokens: kept }, completion_tokens: written } = event.usage;
          const { read_seconds: r, write_seconds: w } = event.mrrope;
          at("read").textContent = (all - kept) + " new tokens, " + kept + " cached, in " + r.toFixed(2) + " s";
          if (written > 1 && w > 0) at("speed").textContent = ((written - 1) / w).toFixed(1);
        }
      }
    } catch (error) {
      if (error.name !== "AbortError") show("trouble", error.message);
    }
    if (message.content) said.push(message);
    running = null;
    send.disabled = false;
    stop.disabled = true;
    input.focus();
  }

  at("ask").addEventListener("submit", event => {
    event.preventDefault();
    const text = input.value;
    if (running || (!text.trim() && (chat || !said.length))) return;
    if (text) {
      said.push({ role: "user", content: text });
      show("user", text);
    }
    input.value = "";
    answer();
  });
  input.addEventListener("keydown", event => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      at("ask").requestSubmit();
    }
  });
  document.addEventListener("keydown", event => {
    if (event.key === "Escape" && running) running.abort();
  });
  stop.addEventListener("click", () => running && running.abort());
  at("fresh").addEventListener("click", () => {
    if (running) running.abort();
    said = [];
    log.replaceChildren();
    showPlace(start);
    at("speed").textContent = at("read").textContent = "-";
    input.focus();
  });
  showPlace(start);
})();
