import type { IncomingMessage } from 'node:http'
import { defaults } from '../../ledger/core/limits.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { ContentKey } from '../protocol/content-options.ts'
import { normaliseTarget } from '../protocol/path.ts'
import type { ProblemOptions, ProblemWriter } from '../protocol/problem-writer.ts'
import { createProblemWriter } from '../protocol/problem-writer.ts'
import type { Route } from '../protocol/protect.ts'
import { createRoute } from '../protocol/protect.ts'
import type { RouteDefinition, Who } from '../protocol/route.ts'
import { DEFAULT_KEY_HEADER } from '../protocol/route.ts'
import type { RegionRouter } from '../region/region.ts'
import { allowedBy } from './authorize.ts'
import { createWho, namesCaller } from './caller.ts'
import type { GatewayConfig, RouteRule, Timeouts } from './config.ts'
import { bindingFor, type CredentialBinding, type Presented } from './credentials.ts'
import { methodsAskedFor, originForm, type Passing } from './headers.ts'
import { labelOf } from './labels.ts'
import { gatewayDefaults } from './limits.ts'
import type { Pattern } from './pattern.ts'
import { compilePattern } from './pattern.ts'
import { readingsOf } from './readings.ts'
import type { Spool } from './spool.ts'
import type { Tokens } from './tokens.ts'
import type { Upstream } from './upstream.ts'

/** A request on its way through a rule. */
export interface Asked extends Presented {
  readonly spool: Spool
}

/** A rule, ready to be used. */
export interface Rule {
  /** Its name in metrics and logs: the operation, or the methods and the pattern. */
  readonly label: string
  readonly methods: ReadonlySet<string>
  /** As it was written, with its names. */
  readonly path: string
  readonly fits: Pattern
  readonly upstream: Upstream
  readonly passing: Passing
  readonly times: Required<Timeouts>
  readonly maxBodyBytes: number
  readonly problems: ProblemWriter
  readonly who: (asked: Asked) => Who | Promise<Who>
  readonly route: Route<Asked, unknown>
  /** Null where callers are trusted, or the upstream authorizes them. */
  readonly binding: CredentialBinding | null
  /** Null where no token is verified, or where it makes no difference. */
  readonly tokens: Tokens | null
  /** Statuses by which its upstream says that nothing happened. */
  readonly notDone: ReadonlySet<number>
  readonly honoursKeys: boolean
  readonly keyHeader: string
}

/** What a rule is made of, once its configuration is read. */
export interface RuleParts {
  readonly ledger: Ledger<unknown>
  readonly methods: readonly string[]
  readonly path: string
  readonly strict?: boolean
  readonly definition: RouteDefinition<Asked>
  /** For requests without a key: unrelated callers may well send the same content. */
  readonly contentWho?: (asked: Asked) => Who | Promise<Who>
  readonly who: (asked: Asked) => Who | Promise<Who>
  readonly problems: ProblemOptions
  readonly upstream: Upstream
  readonly passing: Passing
  readonly times: Required<Timeouts>
  readonly maxBodyBytes: number
  readonly binding?: CredentialBinding | null
  readonly tokens?: Tokens | null
  readonly notDone?: readonly number[]
  readonly region?: RegionRouter | undefined
  readonly onError: (error: unknown) => void
}

export function createRule(parts: RuleParts): Rule {
  const { ledger, who, contentWho, onError, definition, problems, region } = parts
  const near = region === undefined ? {} : { region: withinTime(region, parts) }
  const options = { ledger, who, onError, ...problems, ...near }
  const { keyFrom = { header: DEFAULT_KEY_HEADER } } = definition
  return {
    label: labelOf(definition.name, parts.methods, parts.path),
    methods: new Set(parts.methods),
    path: parts.path,
    fits: compilePattern(parts.path, parts.strict),
    upstream: parts.upstream,
    passing: parts.passing,
    times: parts.times,
    maxBodyBytes: parts.maxBodyBytes,
    problems: createProblemWriter({
      ...problems,
      ...(definition.profile === undefined ? {} : { profile: definition.profile }),
    }),
    who,
    route: createRoute(options, definition, contentWho),
    binding: parts.binding ?? null,
    tokens: parts.tokens ?? null,
    notDone: new Set(parts.notDone),
    honoursKeys: definition.effect === 'repeatable',
    keyHeader: 'header' in keyFrom ? keyFrom.header : DEFAULT_KEY_HEADER,
  }
}

/** What a rule allows its upstream it allows the home of a key, and the wait for a twin there. */
function withinTime(region: RegionRouter, { times, definition: { whileRunning } }: RuleParts): RegionRouter {
  const waitMs = typeof whileRunning === 'string' ? 0 : (whileRunning?.waitMs ?? defaults.waitMs)
  const answerMs = times.connectMs + times.answerMs + waitMs
  return { ...region, forward: (request, ...rest) => region.forward({ ...request, answerMs }, ...rest) }
}

/** The first rule that fits. A target that cannot be read fits none, and is not to slip past all of them. */
export function ruleFor(rules: readonly Rule[], method: string, target: string): Rule | 'malformed' | null {
  const candidates = rules.filter(({ methods }) => methods.has(method))
  if (candidates.length === 0) return null
  const read = normaliseTarget(target)
  if ('problem' in read) return 'malformed'
  let found: readonly string[] | null = null
  const readings = () => (found ??= readingsOf(originForm(target).split('?')[0] ?? '/'))
  return candidates.find(({ fits }) => fits(read.path, readings)) ?? null
}

const SAFE = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE'])

/** By the method of a request, or by another one that it asks its service to take it for. */
export function ruleOfRequest(rules: readonly Rule[], { method = 'GET', url = '/', headers }: IncomingMessage) {
  const by = (each: string) => (SAFE.has(each) ? null : ruleFor(rules, each, url))
  const own = by(method)
  if (own !== null) return own
  for (const other of methodsAskedFor(headers)) {
    const rule = by(other)
    if (rule !== null) return rule
  }
  return null
}

export interface RuleContext {
  readonly config: GatewayConfig
  readonly ledger: Ledger<unknown>
  readonly problems: ProblemOptions
  readonly upstreamOf: (name: string | undefined) => Upstream
  readonly region: RegionRouter | undefined
  readonly tokens: Tokens | null
  readonly onError: (error: unknown) => void
}

/** A rule as it is configured. */
export function readRule(rule: RouteRule, context: RuleContext): Rule {
  const { config, ledger, onError } = context
  const upstream = context.upstreamOf(rule.upstream)
  const passing = passingOf(config)
  const times = { ...timesOf(config.timeouts), ...given(rule.timeouts ?? {}) }
  const { authorize, replay = 'same-credential', key = 'optional', content } = rule
  const decided = authorize !== undefined || replay === 'trusted'
  // A trusted or authorized caller must have a name: many callers share credentials without one.
  const binding = !decided ? bindingFor(rule) : rule.caller === undefined ? bindingFor(rule, namesCaller) : null
  const definition: RouteDefinition<Asked> = {
    ...given({
      name: rule.operation,
      keyFrom: rule.keyFrom,
      profile: rule.profile,
      finality: rule.finality,
      whileRunning: rule.whileRunning,
      retainMs: rule.retainMs,
      maxAnswerBytes: rule.maxAnswerBytes,
    }),
    ...(rule.honoursKeys === true ? { effect: 'repeatable' } : { effect: 'external', onAbandoned: 'hold' }),
    keepHeaders: [...(rule.keepHeaders ?? []), ...(binding === null ? [] : [binding.header])],
    ...(binding === null ? {} : { bound: binding }),
    ...(authorize === undefined
      ? {}
      : { authorize: (asked: Asked) => allowedBy(upstream, authorize.path, asked.message, passing) }),
  }
  const tenant = config.tenant ?? DEFAULT_TENANT
  const who = createWho(rule, tenant, 'one')
  const eachOne = createWho(rule, tenant, 'each')
  return createRule({
    ledger,
    methods: typeof rule.method === 'string' ? [rule.method] : rule.method,
    path: rule.path,
    strict: rule.strict ?? config.strict ?? false,
    definition: key === 'required' ? { ...definition, key } : { ...definition, key, content: contentOf(content) },
    who: ({ message }) => who(message),
    contentWho: ({ message }) => eachOne(message),
    problems: context.problems,
    upstream,
    passing,
    times,
    maxBodyBytes: rule.maxBodyBytes ?? config.maxBodyBytes ?? gatewayDefaults.maxBodyBytes,
    binding,
    tokens: binding === null ? null : context.tokens,
    ...(rule.notDone === undefined ? {} : { notDone: rule.notDone }),
    region: context.region,
    onError,
  })
}

const DEFAULT_TENANT = 'gateway'

/** A store that is slow does not hold a request for long, and strangers may send the same. */
function contentOf(content: RouteRule['content']): ContentKey | undefined {
  return content === undefined ? undefined : { scope: 'caller', decideMs: gatewayDefaults.decideMs, ...content }
}

export function passingOf({ trustForwarded = false, host = 'client', region }: GatewayConfig): Passing {
  return { trustForwarded, host, regional: region !== undefined }
}

export function timesOf(timeouts: Timeouts = {}): Required<Timeouts> {
  const { connectMs, answerMs, bodyMs, idleMs } = gatewayDefaults
  return { connectMs, answerMs, bodyMs, idleMs, ...given(timeouts) }
}

/** What was left out stays out. */
function given<T extends object>(options: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as never
}
