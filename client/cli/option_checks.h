// Checks of the values of options, beyond what CLI11 checks itself.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace fusion {

// A path that is "" names the folder in which the program runs, which is what a variable without a value
// comes to: nobody means it.
inline CLI::Validator NotEmpty() {
  return {[](std::string& value) { return std::string(value.empty() ? "must not be empty" : ""); }, ""};
}

// CLI11's own check names a range that 0 seems to be in.
inline CLI::Validator GreaterThanZero() {
  return {[](std::string& value) {
            double number = 0;
            return std::string(CLI::detail::lexical_cast(value, number) && number > 0
                                   ? ""
                                   : "must be a number greater than 0, but is " + value);
          },
          ""};
}

}  // namespace fusion
