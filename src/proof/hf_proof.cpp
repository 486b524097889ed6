// SPDX-License-Identifier: Apache-2.0
// Runs transformers on an exported folder, in a separate process.
#include <fcntl.h>
#ifdef __linux__
#include <signal.h>
#include <sys/prctl.h>
#endif
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/files/source.h"
#include "base/json.h"
#include "base/text.h"
#include "export/hf_export.h"
#include "mrrope/error.h"
#include "proof/export_proof.h"

namespace mrrope::proof {

namespace {

constexpr unsigned kSeconds = 180;  // importing torch from a cold disk is slow

// transformers computes its angles in float.
constexpr double kTolerance = 1e-5;

// The current folder is not searched for modules: anyone may have put files there.
constexpr const char* kScript = R"(
import sys
sys.path[:] = [p for p in sys.path if p]
import json
import torch, transformers
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
config = transformers.AutoConfig.from_pretrained(sys.argv[1], local_files_only=True)
text = config.get_text_config()
rope = getattr(text, "rope_parameters", None) or text.rope_scaling
layer = {"layer_type": "full_attention"} if "full_attention" in rope else {}
kind = (rope["full_attention"] if layer else rope)["rope_type"]
theta, factor = ROPE_INIT_FUNCTIONS[kind](text, torch.device("cpu"), **layer)
print(json.dumps({"version": transformers.__version__, "theta": theta.tolist(),
                  "factor": float(factor)}))
)";

struct Output {
  int status = -1;
  std::string out;
  std::string err;
};

std::string drain(int file) {
  std::string text;
  char buffer[4096];
  for (;;) {
    const ssize_t got = ::read(file, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(buffer, std::size_t(got));
  }
}

// Without a shell: the folder's name is an argument and nothing else.
Output run_python(const std::string& folder) {
  const char* chosen = std::getenv("MRROPE_PYTHON");
  const std::string program = chosen && *chosen ? chosen : "python3";
  int pipe_ends[2];
  std::FILE* const errors = std::tmpfile();  // has no name
  if (errors == nullptr || ::pipe(pipe_ends) != 0) {
    if (errors != nullptr) std::fclose(errors);
    throw Error(ErrorKind::failed, "cannot make a temporary file or a pipe",
                "free some space, or add --no-verify");
  }
  ::setenv("HF_HUB_OFFLINE", "1", 1);
  ::setenv("TRANSFORMERS_VERBOSITY", "error", 1);
  const pid_t child = ::fork();
  if (child < 0) throw Error(ErrorKind::failed, "cannot start a process", "add --no-verify");
  if (child == 0) {
#ifdef __linux__
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    ::alarm(kSeconds);
    const int nothing = ::open("/dev/null", O_RDONLY);
    ::dup2(nothing, 0);
    ::dup2(pipe_ends[1], 1);
    ::dup2(::fileno(errors), 2);
    ::close(pipe_ends[0]);
    ::execlp(program.c_str(), program.c_str(), "-c", kScript, folder.c_str(),
             static_cast<char*>(nullptr));
    ::_exit(127);
  }
  ::close(pipe_ends[1]);
  Output output;
  output.out = drain(pipe_ends[0]);
  ::close(pipe_ends[0]);
  while (::waitpid(child, &output.status, 0) < 0 && errno == EINTR) {
  }
  ::lseek(::fileno(errors), 0, SEEK_SET);
  output.err = drain(::fileno(errors));
  std::fclose(errors);
  return output;
}

std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const std::size_t start = text.rfind('\n');
  return printable(start == std::string::npos ? text : text.substr(start + 1));
}

}  // namespace

HuggingFaceProof prove_huggingface(const std::filesystem::path& folder, const Plan& plan) {
  HuggingFaceProof proof;
  const Output output = run_python(folder.string());
  if (!WIFEXITED(output.status) || WEXITSTATUS(output.status) != 0) {
    proof.why = WIFEXITED(output.status) && WEXITSTATUS(output.status) == 127
                    ? "python3 was not found (MRROPE_PYTHON can name another program)"
                    : last_line(output.err);
    if (proof.why.empty()) proof.why = "python3 exited with no output";
    return proof;
  }
  const nlohmann::json read = parse_json(last_line(output.out), "the output of python3");
  const std::vector<double> theta = read.at("theta").get<std::vector<double>>();
  const std::vector<double>& wanted = plan.theta();
  const auto differs = [&](const std::string& what) {
    throw Error(
        ErrorKind::goal_not_met,
        cat("transformers reads something other than the plan from the exported folder: ", what),
        "this is a bug in mrrope: please report it");
  };
  if (theta.size() != wanted.size()) {
    differs(cat(theta.size(), " pairs instead of ", wanted.size()));
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    proof.largest = std::max(proof.largest, std::abs(theta[i] / wanted[i] - 1));
  }
  const double factor = read.at("factor").get<double>();
  proof.temperature = std::abs(factor / exporting::total_attention_scale(plan) - 1);
  if (!(proof.largest < kTolerance) || !(proof.temperature < kTolerance)) {
    differs(cat("angles differ by ", significant(proof.largest, 3), ", the temperature by ",
                significant(proof.temperature, 3)));
  }
  proof.ran = true;
  proof.version = read.at("version").get<std::string>();
  return proof;
}

}  // namespace mrrope::proof
