#include <ctime>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/invocation.h"

namespace fusion {
namespace {

constexpr double kSecondsOfDay = 86400;

ExitCode Create(const Invocation& invocation, const std::string& principal, const std::string& role,
                double days, const std::vector<std::string>& scopes) {
  absl::StatusOr<std::unique_ptr<Client>> client = OpenClient(invocation);
  if (!client.ok()) return invocation.Report(client.status());
  v1::CreateTokenRequest request;
  request.set_principal(principal);
  v1::Role parsed = v1::ROLE_UNSPECIFIED;
  v1::Role_Parse(absl::AsciiStrToUpper(role), &parsed);
  request.set_role(parsed);
  request.set_seconds(days * kSecondsOfDay);
  for (const std::string& scope : scopes) request.add_scopes(scope);
  absl::StatusOr<v1::CreateTokenResponse> created = (*client)->CreateToken(request);
  if (!created.ok()) return invocation.Report(created.status());
  if (!scopes.empty() && created->token().scopes().empty()) {
    // Nobody has seen it yet.
    const absl::Status revoked = (*client)->RevokeToken(created->token().name()).status();
    return invocation.Report(absl::FailedPreconditionError(absl::StrCat(
        "the server is of an earlier version and knows no scopes; ", created->token().name(),
        revoked.ok() ? " was revoked" : " has none and could not be revoked, which you must do")));
  }
  if (invocation.json) {
    std::cout << JsonText(TokenJson(created->token(), created->secret()));
    return kDone;
  }
  std::cout << created->secret() << "\n";
  std::cerr << created->token().name() << ": " << principal
            << " shows it in $FUSION_TOKEN or --token-file; it is shown "
            << "here once, and stored nowhere\n";
  return kDone;
}

ExitCode ListTokens(const Invocation& invocation) {
  absl::StatusOr<std::unique_ptr<Client>> client = OpenClient(invocation);
  if (!client.ok()) return invocation.Report(client.status());
  absl::StatusOr<v1::ListTokensResponse> tokens = (*client)->ListTokens();
  if (!tokens.ok()) return invocation.Report(tokens.status());
  std::cout << (invocation.json ? JsonText(TokenListJson(*tokens))
                                : TokenListText(*tokens, std::time(nullptr), invocation.Style()));
  return kDone;
}

ExitCode Revoke(const Invocation& invocation, const std::string& given) {
  absl::StatusOr<std::unique_ptr<Client>> client = OpenClient(invocation);
  if (!client.ok()) return invocation.Report(client.status());
  const std::string name = absl::StartsWith(given, "tokens/") ? given : absl::StrCat("tokens/", given);
  absl::StatusOr<v1::Token> token = (*client)->RevokeToken(name);
  if (!token.ok()) return invocation.Report(token.status());
  v1::ListTokensResponse one;
  *one.add_tokens() = *token;
  std::cout << (invocation.json ? JsonText(TokenJson(*token, ""))
                                : TokenListText(one, std::time(nullptr), invocation.Style()));
  return kDone;
}

}  // namespace

void AddTokensCommands(CLI::App* app, Invocation* invocation) {
  CLI::App* tokens = app->add_subcommand("tokens", "Secrets by which people show who they are (for admins)");
  auto principal = std::make_shared<std::string>();
  auto role = std::make_shared<std::string>("user");
  auto days = std::make_shared<double>(90);
  auto scopes = std::make_shared<std::vector<std::string>>();
  auto name = std::make_shared<std::string>();

  CLI::App* create = tokens->add_subcommand("create", "Make a token; its text is printed once");
  create->add_option("--principal", *principal, "Whose token: letters, digits and . _ @ -")->required();
  create->add_option("--role", *role, "user, worker or admin")
      ->check(CLI::IsMember({"user", "worker", "admin"}))
      ->capture_default_str();
  create->add_option("--days", *days, "How long it is good; 0: for ever")
      ->check(CLI::Range(0.0, 36500.0))
      ->capture_default_str();
  create
      ->add_option(
          "--scope", *scopes,
          "Limit it, beside its role, to read (whatever changes nothing), submit (jobs), tune, manage "
          "(tokens, workers, backups, model reset), work (of workers): one or several, submit,read")
      ->delimiter(',')
      ->check(CLI::IsMember({"read", "submit", "tune", "manage", "work"}));
  AddCommonOptions(create, invocation);
  create->callback(
      [=] { invocation->run = [=] { return Create(*invocation, *principal, *role, *days, *scopes); }; });

  CLI::App* list = tokens->add_subcommand("list", "Tokens, oldest first, without their secrets");
  AddCommonOptions(list, invocation);
  list->callback([=] { invocation->run = [=] { return ListTokens(*invocation); }; });

  CLI::App* revoke = tokens->add_subcommand("revoke", "Make a token open nothing any more, at once");
  revoke->add_option("TOKEN", *name, "tokens/ID, or ID")->required();
  AddCommonOptions(revoke, invocation);
  revoke->callback([=] { invocation->run = [=] { return Revoke(*invocation, *name); }; });
}

}  // namespace fusion
