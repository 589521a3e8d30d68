// What a person pastes into another program, by its name: the same in every language.

/** In the place of the token, which the page does not know. */
export const TOKEN = "TOKEN";

const json = value => JSON.stringify(value, null, 2);

/** What connects a program to our tools, at the address of MCP. */
export const TOOLS = at => ({
  "Claude Code": `claude mcp add --transport http searchloop ${at} --header "Authorization: Bearer ${TOKEN}"`,
  Codex: `[mcp_servers.searchloop]\nurl = "${at}"\nbearer_token_env_var = "SEARCHLOOP_TOKEN"`,
  opencode: json({ mcp: { searchloop: { type: "remote", url: at, headers: { Authorization: `Bearer ${TOKEN}` } } } }),
  Zed: json({ context_servers: { searchloop: { command: "searchloop", args: ["mcp", "serve"] } } }),
  LibreChat: [
    "mcpServers:",
    "  searchloop:",
    "    type: streamable-http",
    `    url: ${at}`,
    "    headers:",
    `      Authorization: Bearer ${TOKEN}`,
  ].join("\n"),
  "LM Studio": json({ mcpServers: { searchloop: { url: at, headers: { Authorization: `Bearer ${TOKEN}` } } } }),
});

/** What connects a program to our models, at the address of this server. */
export const MODELS = at => ({
  "Open WebUI": `${at}/v1\n${TOKEN}`,
  LibreChat: [
    "endpoints:",
    "  custom:",
    "    - name: searchloop",
    `      baseURL: ${at}/v1`,
    `      apiKey: ${TOKEN}`,
    "      models: { default: [default], fetch: true }",
  ].join("\n"),
  opencode: json({
    provider: {
      searchloop: {
        npm: "@ai-sdk/openai-compatible",
        options: { baseURL: `${at}/v1`, apiKey: TOKEN },
        models: { default: {}, "default+web": {} },
      },
    },
  }),
  "Claude Code": `ANTHROPIC_BASE_URL=${at} ANTHROPIC_API_KEY=${TOKEN} claude --model default`,
  Codex: [
    'model = "default"',
    'model_provider = "searchloop"',
    "",
    "[model_providers.searchloop]",
    'name = "searchloop"',
    `base_url = "${at}/v1"`,
    'wire_api = "responses"',
    'env_key = "SEARCHLOOP_TOKEN"',
  ].join("\n"),
});
