#include <algorithm>
#include <iostream>
#include <memory>

#include "client/cli/invocation.h"

namespace fusion {
namespace {

ExitCode ListAudit(const Invocation& invocation, int limit) {
  absl::StatusOr<std::unique_ptr<Client>> client = OpenClient(invocation);
  if (!client.ok()) return invocation.Report(client.status());
  v1::ListAuditEntriesResponse all;
  while (all.entries_size() < limit) {
    absl::StatusOr<v1::ListAuditEntriesResponse> page =
        (*client)->ListAuditEntries(std::min(limit - all.entries_size(), 1000), all.next_page_token());
    if (!page.ok()) return invocation.Report(page.status());
    all.set_next_page_token(page->next_page_token());
    all.mutable_entries()->MergeFrom(page->entries());
    if (all.next_page_token().empty()) break;
  }
  std::cout << (invocation.json ? JsonText(AuditJson(all)) : AuditText(all, invocation.Style()));
  return kDone;
}

}  // namespace

void AddAuditCommands(CLI::App* app, Invocation* invocation) {
  CLI::App* audit = app->add_subcommand("audit", "What was changed, and what was refused (for admins)");
  auto limit = std::make_shared<int>(50);
  CLI::App* list = audit->add_subcommand("list", "Entries, newest first");
  list->add_option("--limit", *limit, "Most entries to list")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  AddCommonOptions(list, invocation);
  list->callback([=] { invocation->run = [=] { return ListAudit(*invocation, *limit); }; });
}

}  // namespace fusion
