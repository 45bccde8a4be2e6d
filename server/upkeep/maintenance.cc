#include "server/upkeep/maintenance.h"

#include <iostream>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "db/store/database_file.h"
#include "server/upkeep/data_directory.h"

namespace fusion {
namespace {

struct MaintenanceOptions {
  std::string data;
  std::string file;
};

int Report(const absl::Status& status) {
  std::cerr << "error: " << status.message() << "\n";
  const bool bad_input =
      absl::IsInvalidArgument(status) || absl::IsNotFound(status) || absl::IsAlreadyExists(status);
  return bad_input ? 2 : 1;
}

std::string Describe(const DatabaseFacts& facts) {
  return absl::StrCat(facts.bytes, " bytes, schema ", facts.schema_version, ", ", facts.jobs, " jobs");
}

int BackUp(const MaintenanceOptions& options) {
  const absl::StatusOr<DatabaseFacts> facts = BackUpDatabase(DatabasePath(options.data), options.file);
  if (!facts.ok()) return Report(facts.status());
  std::cout << "wrote " << options.file << ": " << Describe(*facts) << "\n";
  return 0;
}

int Restore(const MaintenanceOptions& options) {
  if (absl::Status status = PrepareDataDirectory(options.data); !status.ok()) return Report(status);
  const absl::StatusOr<RestoredDatabase> restored =
      RestoreDatabase(options.file, DatabasePath(options.data), TimeOfDay());
  if (!restored.ok()) return Report(restored.status());
  std::cout << "restored " << options.file << " to " << DatabasePath(options.data) << ": "
            << Describe(restored->facts) << "\n";
  if (!restored->kept.empty()) std::cout << "the database that was there is now " << restored->kept << "\n";
  return 0;
}

int Check(const MaintenanceOptions& options) {
  const absl::StatusOr<DatabaseFacts> facts = CheckDatabase(DatabasePath(options.data));
  if (!facts.ok()) return Report(facts.status());
  std::cout << DatabasePath(options.data) << " is good: " << Describe(*facts) << "\n";
  return 0;
}

}  // namespace

void AddMaintenanceCommands(CLI::App* app, std::function<int()>* run) {
  auto options = std::make_shared<MaintenanceOptions>();
  options->data = DefaultDataDirectory();
  const auto add = [&](const char* name, const char* help, const char* file_option, const char* file_help,
                       int (*command)(const MaintenanceOptions&)) {
    CLI::App* added = app->add_subcommand(name, help);
    added->add_option("--data", options->data, "Folder of the database (default: as for serving)")
        ->capture_default_str();
    if (file_option != nullptr) added->add_option(file_option, options->file, file_help)->required();
    added->callback([=] { *run = [=] { return command(*options); }; });
  };
  app->require_subcommand(0, 1);
  add("backup", "Write a consistent copy of the database, also beside a running server", "--output",
      "File to write; must not exist", BackUp);
  add("restore", "Put a backup in the place of the database, which is kept beside it", "--input",
      "The backup", Restore);
  add("check", "Read the whole database and say whether it is good", nullptr, nullptr, Check);
}

}  // namespace fusion
