// SPDX-License-Identifier: Apache-2.0
// Chat templates, good and hostile, run outside this process.
#include "engine/chat/chat.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "engine/llama/local.h"
#include "models/byte_vocabulary.h"
#include "support/crowd.h"
#include "support/test.h"

namespace mrrope::engine {
namespace {

using std::chrono::milliseconds;

constexpr const char* kPlain =
    "{{ bos_token }}{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}";

constexpr const char* kEndless =
    "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}";

std::string render(ChatRenderer& renderer, const std::string& source,
                   const std::string& content = "Hi", milliseconds limit = milliseconds(60000)) {
  const ChatMessage message{"user", content};
  return renderer.render({source, "<s>", "</s>", true}, {&message, 1}, limit);
}

// The reason that is given for a template that cannot be rendered.
std::string refusal(ChatRenderer& renderer, const std::string& source, milliseconds limit) {
  try {
    return "rendered " + std::to_string(render(renderer, source, "Hi", limit).size()) + " bytes";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(ChatRenderer, RendersWithoutTheBosThatTheTokenizerAdds) {
  ChatRenderer renderer;
  EXPECT_EQ(render(renderer, kPlain), "<user>Hi<assistant>");
  const ChatMessage message{"user", "Hi"};
  EXPECT_EQ(renderer.render({kPlain, "<s>", "</s>", false}, {&message, 1}, milliseconds(60000)),
            "<s><user>Hi<assistant>");
}

TEST(ChatRenderer, ReportsExceptionsOfTheTemplate) {
  ChatRenderer renderer;
  EXPECT_TRUE(contains(
      refusal(renderer, "{{ raise_exception('no system role here') }}", milliseconds(60000)),
      "no system role here"));
}

TEST(ChatRenderer, SurvivesTemplatesThatCrash) {
  ChatRenderer renderer;
  const std::string deep(100000, '(');
  for (const std::string& source :
       {std::string("{% macro f(n) %}{{ f(n) }}{% endmacro %}{{ f(1) }}"), "{{ " + deep + " }}",
        "{{ " + std::string(200000, '[') + " }}",
        std::string("{% set n = namespace() %}{% set n.a = n %}{{ n | tojson }}")}) {
    EXPECT_EQ(refusal(renderer, source, milliseconds(60000)), "it crashed or used too much memory")
        << source.substr(0, 40);
  }
  EXPECT_EQ(render(renderer, kPlain), "<user>Hi<assistant>");
}

TEST(ChatRenderer, StopsEndlessTemplates) {
  ChatRenderer renderer;
  EXPECT_EQ(refusal(renderer, kEndless, milliseconds(300)), "it ran for more than 300 ms");
  EXPECT_EQ(render(renderer, kPlain), "<user>Hi<assistant>");
}

#ifdef __linux__
TEST(ChatRenderer, LongWorkLeavesTheProcessorsToOthers) {
  const auto before = test::children_of(getpid());
  ChatRenderer renderer;
  std::thread endless([&] { refusal(renderer, kEndless, milliseconds(60000)); });
  const auto worker = [&] {
    for (const auto& keeper : test::new_children(before)) {
      for (const auto& child : test::children_of(keeper.first)) return child.first;
    }
    return pid_t{0};
  };
  while (worker() == 0) std::this_thread::yield();
  const pid_t found = worker();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  const int nice = std::min(::getpriority(PRIO_PROCESS, 0) + 5, 19);
  bool nice_first = false;  // work that is no more than long has a share of busy processors
  while (::sched_getscheduler(found) != SCHED_IDLE && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(milliseconds(1));
    nice_first |= ::getpriority(PRIO_PROCESS, id_t(found)) == nice;
  }
  EXPECT_TRUE(nice_first);
  EXPECT_EQ(::sched_getscheduler(found), SCHED_IDLE);
  EXPECT_EQ(render(renderer, kPlain), "<user>Hi<assistant>");
  ::kill(found, SIGKILL);
  endless.join();
}
#endif

// Also where it died just now, and where it had taken the request already.
TEST(ChatRenderer, StartsAnotherKeeperWhenOneIsKilled) {
  const auto before = test::children_of(getpid());
  ChatRenderer renderer;
  for (const bool gone : {true, false, true}) {
    const auto keeper = test::new_children(before);
    ASSERT_EQ(keeper.size(), 1U);
    ::kill(keeper.begin()->first, SIGKILL);
    while (gone && test::new_children(before).begin()->second != 'Z') std::this_thread::yield();
    EXPECT_EQ(render(renderer, kPlain), "<user>Hi<assistant>");
    const auto after = test::new_children(before);
    ASSERT_EQ(after.size(), 1U);
    EXPECT_NE(after.begin()->first, keeper.begin()->first);
    EXPECT_NE(after.begin()->second, 'Z');
  }
}

TEST(ChatRenderer, AnswersAreReadWhileOthersWait) {
  const auto before = test::children_of(getpid());
  ChatRenderer renderer;
  ChatInputs inputs;
  inputs.messages = R"([{"role": "user", "content": "Hi"}])";
  inputs.split_reasoning = false;
  inputs.tools = R"([{"type": "function", "function": {"name": "look", "description": "",
                      "parameters": {"type": "object", "properties": {}}}}])";
  const std::string tools = test::read_file(MRROPE_GOLDEN_DIR "/tool_calls.jinja");
  const ChatPrompt prompt = renderer.prepare({tools, "", "", false}, inputs, milliseconds(60000));
  {
    test::Crowd crowd(renderer, before);
    EXPECT_EQ(renderer.parse(prompt.syntax, "Hello", false, milliseconds(60000)).content, "Hello");
    EXPECT_THROW(render(renderer, kPlain), ChatBusy);
    EXPECT_EQ(crowd.failed, 0);  // all of them still want their turn
    EXPECT_EQ(crowd.left, 0);
    crowd.gone = true;  // those that wait leave, those that work do not
    while (crowd.left < test::Crowd::kWaiting) std::this_thread::yield();
    EXPECT_EQ(crowd.failed, 0);
  }
  EXPECT_EQ(render(renderer, kPlain), "<user>Hi<assistant>");
}

// The program that a worker ran may have written anything in its name.
TEST(ChatRenderer, BadRepliesAreErrors) {
  const std::string prompt = R"({"prompt": "p", "grammar": "", "lazy": false, "trigger_words": [],
      "trigger_patterns": [], "begun": "", "shown": [], "stops": [], "syntax": ""})";
  const std::string answer = R"({"content": "c", "reasoning": "", "calls": [{"id": "1",
      "name": "n", "arguments": "{}"}]})";
  EXPECT_EQ(read_reply<ChatPrompt>(prompt).prompt, "p");
  EXPECT_EQ(read_reply<ParsedAnswer>(answer).calls.at(0).name, "n");
  for (const std::string& bad : {std::string(), std::string("{"), std::string("[]"),
                                 std::string("null"), std::string("5"), std::string("{}")}) {
    EXPECT_THROW(read_reply<ChatPrompt>(bad), Error) << bad;
    EXPECT_THROW(read_reply<ParsedAnswer>(bad), Error) << bad;
  }
  // Without each of its keys, and with a value of another type.
  const auto spoiled = [](const std::string& good, const auto& read) {
    const auto whole = nlohmann::ordered_json::parse(good);
    for (const auto& [key, value] : whole.items()) {
      auto without = whole;
      without.erase(key);
      EXPECT_THROW(read(without.dump()), Error) << key;
      auto other = whole;
      other[key] = {{"a", 5}};
      EXPECT_THROW(read(other.dump()), Error) << key;
    }
  };
  spoiled(prompt, read_reply<ChatPrompt>);
  spoiled(answer, read_reply<ParsedAnswer>);
}

TEST(ChatRenderer, StopsTemplatesThatExhaustMemory) {
  ChatRenderer renderer;
  const std::string why = refusal(renderer,
                                  "{% set ns = namespace(s='xxxxxxxxxxxxxxxx') %}"
                                  "{% for i in range(60) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}"
                                  "{{ ns.s }}",
                                  milliseconds(2000));
  EXPECT_FALSE(contains(why, "rendered"));
  EXPECT_EQ(render(renderer, kPlain), "<user>Hi<assistant>");
}

// Device drivers reserve address space by the gigabyte.
TEST(ChatRenderer, DoesNotCountAddressSpaceReservedBefore) {
  const std::size_t size = std::size_t{64} << 30;
  void* reserved =
      mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(reserved, MAP_FAILED);
  {
    ChatRenderer renderer;
    const std::string content(1 << 20, 'x');
    EXPECT_EQ(render(renderer, kPlain, content), "<user>" + content + "<assistant>");
  }
  munmap(reserved, size);
}

// Templates of llama.cpp's source, one for each family, as recorded by tools/record_chats.py.
TEST(ChatRenderer, RendersAsTransformersDoes) {
  const auto golden = nlohmann::json::parse(test::read_file(MRROPE_GOLDEN_DIR "/chats.json"));
  ChatRenderer renderer;
  for (const auto& [name, recorded] : golden.at("templates").items()) {
    const std::string source = test::read_file(std::string(MRROPE_CHAT_TEMPLATES "/") + name);
    ASSERT_FALSE(source.empty()) << name;
    for (const auto& [title, conversation] : golden.at("conversations").items()) {
      SCOPED_TRACE(name + ", " + title);
      std::vector<ChatMessage> messages;
      for (const auto& m : conversation) messages.push_back({m.at("role"), m.at("content")});
      const std::string prompt = renderer.render(
          {source, recorded.at("bos"), recorded.at("eos"), false}, messages, milliseconds(60000));
      if (const auto& expected = recorded.at("prompts").at(title); !expected.is_null()) {
        EXPECT_EQ(prompt, expected.get<std::string>());
        continue;
      }
      // Refused by transformers: a system message in a template without that role. It becomes part
      // of the first user message.
      ASSERT_EQ(messages.at(0).role, "system");
      messages.at(1).content = messages.at(0).content + "\n" + messages.at(1).content;
      messages.erase(messages.begin());
      EXPECT_EQ(prompt, renderer.render({source, recorded.at("bos"), recorded.at("eos"), false},
                                        messages, milliseconds(60000)));
    }
  }
}

TEST(ChatTemplate, RunsInASeparateProcess) {
  const test::TempFolder folder;
  const ChatMessage message{"user", "Hi"};
  auto file = test::byte_vocabulary("gpt-2");
  file.text("tokenizer.chat_template", "{% macro f(n) %}{{ f(n) }}{% endmacro %}{{ f(1) }}");
  const auto hostile = open_vocabulary(folder.write("hostile.gguf", file.bytes()));
  const Error error = test::error_of([&] { hostile->apply_chat_template({&message, 1}); });
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  EXPECT_TRUE(contains(error.what(), "hostile.gguf"));
  auto plain = test::byte_vocabulary("gpt-2");
  plain.text("tokenizer.chat_template", std::string(kPlain).substr(15));  // without BOS
  const auto good = open_vocabulary(folder.write("good.gguf", plain.bytes()));
  EXPECT_EQ(good->apply_chat_template({&message, 1}), "<user>Hi<assistant>");
}

}  // namespace
}  // namespace mrrope::engine
