import { flag, optional, since, text, texts, type Values, withDefault } from '../commands/argument.ts'

const config = optional(text('a configuration; onceonly.config.ts when left out'))

export const gatewayArguments = {
  upstream: optional(text('the service, for example http://127.0.0.1:3000; may also stand in the configuration')),
  listen: withDefault(text('[HOST:]PORT to listen on; 127.0.0.1:8080 when left out'), '127.0.0.1:8080'),
  config: optional(
    text('a .ts, .js or .json file that exports `gateway`; onceonly.config.ts or .json here when left out'),
  ),
  store: withDefault(
    text('a file for SQLite (onceonly.db when left out), postgres://…, mariadb://…, redis://…, or memory'),
    'onceonly.db',
  ),
  console: optional(
    text(
      '[HOST:]PORT for the console. Its tokens stand in the configuration; without them one is made and printed, and the console is for this machine only',
    ),
  ),
  quiet: flag('no line for each request; findings of guards and errors are still printed'),
}

export const replayArguments = {
  runs: withDefault(texts('the runs'), []),
  all: flag('every run of a definition in the configuration'),
  since: optional(since('only runs that were started since then, such as 7d')),
  config,
  ignore: withDefault(texts('a place that may differ: `welcome: $.sentAt`, `*: $.headers.**`'), []),
  json: flag('one line of JSON for each run'),
}

export const checklistArguments = { config, json: flag('JSON instead of text') }

export const doctorArguments = {
  server: optional(
    text('also ask a running server, for example about its uploads; the token is ONCEONLY_OPERATOR_TOKEN'),
  ),
}

export type GatewayValues = Values<typeof gatewayArguments>
export type ReplayValues = Values<typeof replayArguments>
