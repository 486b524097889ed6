// SPDX-License-Identifier: Apache-2.0
#include "support/command.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace mrrope {

CommandResult run_command(const std::string& arguments, const std::string& before) {
  return RunningCommand(arguments, before).wait();
}

CommandResult expect_run(const std::string& arguments, int exit_code,
                         std::initializer_list<std::string> words, const std::string& before) {
  const CommandResult r = run_command(arguments, before);
  EXPECT_EQ(r.exit_code, exit_code) << arguments << "\n" << r.err;
  for (const std::string& part : words) EXPECT_TRUE(contains(r.out + r.err, part)) << arguments;
  return r;
}

json expect_json(const std::string& arguments) {
  return json::parse(expect_run(arguments).out, nullptr, false);
}

json longbench_item(const std::string& id, const std::string& domain, const std::string& context) {
  json item = json::parse(R"({"sub_domain": "x", "difficulty": "easy", "length": "short",
      "question": "Which?", "choice_A": "one", "choice_B": "two", "choice_C": "six",
      "choice_D": "ten", "answer": "B"})");
  item.update({{"_id", id}, {"domain", domain}, {"context", context}});
  return item;
}

std::size_t lines_in(const std::filesystem::path& file) {
  const std::string content = read_file(file);
  return std::size_t(std::count(content.begin(), content.end(), '\n'));
}

RunningCommand::RunningCommand(const std::string& arguments, const std::string& before) {
  // exec: signals reach the command, not a shell around it. What it keeps between calls is its own.
  const std::string line = "export XDG_CACHE_HOME=" + folder_.file("cache") + "; " + before +
                           " exec " + MRROPE_COMMAND + " " + arguments + " >" +
                           folder_.file("out") + " 2>" + folder_.file("err") + " </dev/null";
  process_ = fork();
  if (process_ < 0) throw std::runtime_error("cannot start a process");
  if (process_ == 0) {
    execl("/bin/sh", "sh", "-c", line.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
}

RunningCommand::~RunningCommand() {
  if (status_) return;
  send(SIGKILL);
  waitpid(process_, nullptr, 0);
}

bool RunningCommand::running() {
  int status = 0;
  if (!status_ && waitpid(process_, &status, WNOHANG) == process_) status_ = status;
  return !status_;
}

void RunningCommand::send(int signal) { kill(process_, signal); }

CommandResult RunningCommand::wait() {
  int status = 0;
  if (!status_ && waitpid(process_, &status, 0) == process_) status_ = status;
  CommandResult result;
  result.exit_code = WIFEXITED(*status_) ? WEXITSTATUS(*status_) : 128 + WTERMSIG(*status_);
  result.out = read_file(folder_.file("out"));
  result.err = read_file(folder_.file("err"));
  return result;
}

}  // namespace mrrope
