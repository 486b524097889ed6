// What the server sends while it reads a prompt and writes an answer.
"use strict";
const stream = (() => {
  // Events of a stream, one by one. Comments with an object tell how far a long prompt is read.
  async function* events(response) {
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let held = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) throw new Error("the connection ended before the answer was complete");
      held += value;
      for (let end; (end = held.indexOf("\n\n")) >= 0; held = held.slice(end + 2)) {
        const data = held.slice(0, end).replace(/^(data)?: /, "");
        if (data === "[DONE]") return;
        if (data.startsWith("{")) yield JSON.parse(data);
      }
    }
  }

  // How far the prompt is read, from either kind of event that tells it.
  function progressOf({ prompt_progress: progress, mrrope }) {
    if (progress) {
      const { total, cache, processed, time_ms: time } = progress;
      const rate = time > 0 ? 1000 * (processed - cache) / time : 0;
      return { read: processed - cache, total: total - cache, cached: cache, rate, left: rate > 0 ? (total - processed) / rate : NaN };
    }
    if (!mrrope?.prefill) return null;
    const { read, total, tokens_per_second: rate, seconds_left: left } = mrrope.prefill;
    return { read, total, cached: 0, rate, left };
  }

  return { events, progressOf };
})();
