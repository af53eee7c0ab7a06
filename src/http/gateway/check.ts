import { limits } from '../../ledger/core/limits.ts'
import type { SettingFault } from '../../ledger/core/settings.ts'
import { refuseFaults } from '../../ledger/core/settings.ts'
import { canBeKept } from '../protocol/record.ts'
import { MAX_ANSWER_BYTES } from '../protocol/route.ts'
import { regionFaults } from '../region/region.ts'
import type { GatewayConfig, RouteRule } from './config.ts'
import { jwks } from './jwks-check.ts'
import { gatewayLimits } from './limits.ts'
import { patternFault } from './pattern.ts'
import type { Check } from './schema.ts'
import { either, fields, isFields, listOf, matching, oneOf, tableOf, text, wholeNumber } from './schema.ts'

const SAFE = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'CONNECT', '*'])
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const MOST_LISTED = 100
const LOOPBACK_NAME = /^(?:localhost|127\.\d+\.\d+\.\d+|::1)$/i

const duration = wholeNumber(1, limits.longestMs)
const header = matching(TOKEN, 'is not the name of a header')
const bodyBytes = wholeNumber(0, gatewayLimits.maxBodyBytes)

const method: Check = (value, path, faults) => {
  if (typeof value !== 'string' || !TOKEN.test(value)) faults.push({ path, what: 'is not a method' })
  else if (value !== value.toUpperCase()) faults.push({ path, what: `is not spelled ${value.toUpperCase()}` })
  else if (SAFE.has(value)) faults.push({ path, what: 'changes nothing, so that it needs no protection' })
}

const methods = listOf(method, MOST_LISTED)

const pathPattern: Check = (value, path, faults) => {
  const what = typeof value === 'string' ? patternFault(value) : 'is not a text'
  if (what !== null) faults.push({ path, what })
}

const upstreamUrl: Check = (value, path, faults) => {
  const what = typeof value === 'string' ? urlFault(value) : 'is not a text'
  if (what !== null) faults.push({ path, what })
}

/** @returns what is wrong with it, or null */
function urlFault(value: string): string | null {
  const url = URL.canParse(value) ? new URL(value) : null
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) return 'is not an http or https URL'
  if (url.username !== '' || url.password !== '') return 'holds a credential, which belongs into the requests'
  return url.search === '' && url.hash === '' ? null : 'has a query or a fragment'
}

/** A key is the same caller's after its token was renewed. */
const steadyHeader: Check = (value, path, faults) => {
  header(value, path, faults)
  const name = typeof value === 'string' ? value.toLowerCase() : ''
  if (name === 'authorization' || name === 'proxy-authorization') {
    faults.push({ path, what: 'changes when it is renewed; leave `caller` out, and what stays the same of it counts' })
  }
  if (name === 'cookie') faults.push({ path, what: 'holds more than the session; write { cookie: … } and its name' })
}

const callerSource = either(
  [
    fields({ header: steadyHeader, anonymous: oneOf(true, false) }, ['header']),
    fields({ cookie: header, anonymous: oneOf(true, false) }, ['cookie']),
    fields({ claim: text(), anonymous: oneOf(true, false) }, ['claim']),
  ],
  'is neither { header } nor { cookie } nor { claim }',
)

const token = matching(/^[\x21-\x7e]{16,}$/, 'is not a text of at least 16 visible characters')

const timeouts = fields({ connectMs: duration, answerMs: duration, bodyMs: duration, idleMs: duration })

const keptHeader: Check = (value, path, faults) => {
  header(value, path, faults)
  if (typeof value === 'string' && !canBeKept(value.toLowerCase())) {
    faults.push({ path, what: 'belongs to one exchange, and cannot be kept' })
  }
}

const rule = fields(
  {
    method: (value, path, faults) => (Array.isArray(value) ? methods : method)(value, path, faults),
    path: pathPattern,
    strict: oneOf(true, false),
    operation: text(),
    key: oneOf('required', 'optional'),
    keyFrom: either(
      [fields({ header }, ['header']), fields({ field: text() }, ['field'])],
      'is neither { header } nor { field }',
    ),
    caller: either([oneOf('shared'), callerSource], "is neither 'shared' nor { header } nor { cookie } nor { claim }"),
    tenant: either([text(), callerSource], 'is neither a name nor { header } nor { cookie } nor { claim }'),
    profile: oneOf('standard', 'ietf', 'stripe'),
    finality: oneOf('deterministic', 'snapshot', 'success-only'),
    upstream: text(),
    honoursKeys: oneOf(true, false),
    replay: oneOf('trusted', 'same-credential'),
    notDone: listOf(wholeNumber(400, 599), MOST_LISTED),
    authorize: fields({ path: matching(/^\/[\x21-\x7e]*$/, 'is not a path') }, ['path']),
    whileRunning: either(
      [oneOf('conflict', 'accept'), fields({ waitMs: wholeNumber(0, limits.waitMaxMs) }, ['waitMs'])],
      "is neither 'conflict' nor 'accept' nor { waitMs }",
    ),
    retainMs: duration,
    keepHeaders: listOf(keptHeader, MOST_LISTED),
    maxAnswerBytes: wholeNumber(0, MAX_ANSWER_BYTES),
    maxBodyBytes: bodyBytes,
    timeouts,
    content: fields({
      withinMs: duration,
      scope: oneOf('tenant', 'caller'),
      waitMs: wholeNumber(0, limits.waitMaxMs),
      onStoreDown: oneOf('open', 'closed'),
      decideMs: wholeNumber(1, limits.storeCallMs),
    }),
  },
  ['method', 'path'],
)

const config = fields({
  upstream: upstreamUrl,
  upstreams: tableOf(upstreamUrl),
  ca: matching(/-----BEGIN CERTIFICATE-----/, 'is not a certificate in PEM'),
  routes: listOf(rule, gatewayLimits.routes),
  tenant: text(),
  strict: oneOf(true, false),
  trustForwarded: oneOf(true, false),
  host: oneOf('client', 'upstream'),
  timeouts,
  maxBodyBytes: bodyBytes,
  problemBase: text(),
  ownPath: matching(/^(\/[\w.~-]+)+$/, 'is not a path like /.onceonly'),
  metricsToken: token,
  jwks,
  console: fields({ port: wholeNumber(0, 65_535), host: text(), operatorToken: token, viewerToken: token }, ['port']),
  region: (value, path, faults) => {
    for (const { path: inside, what } of regionFaults(value))
      faults.push({ path: inside === '' ? path : `${path}.${inside}`, what })
  },
})

/** What cannot be said of one member alone. */
function crossFaults(given: GatewayConfig, faults: SettingFault[]): void {
  if (given.upstream === undefined && given.upstreams === undefined) {
    faults.push({ path: 'upstream', what: 'is missing: give it here, or with --upstream' })
  }
  const { host = '127.0.0.1', operatorToken, viewerToken } = given.console ?? {}
  if (!LOOPBACK_NAME.test(host) && operatorToken === undefined && viewerToken === undefined) {
    faults.push({
      path: 'console.host',
      what: 'is not this machine alone, so that `operatorToken` or `viewerToken` is needed',
    })
  }
  if (operatorToken !== undefined && operatorToken === viewerToken) {
    faults.push({ path: 'console.viewerToken', what: "is the operator's token, so viewers could act as operators" })
  }
  given.routes?.forEach((each: RouteRule, at) => {
    const place = (member: string) => `routes[${at}].${member}`
    const note = (member: string, what: string) => faults.push({ path: place(member), what })
    if (each.upstream === undefined && given.upstream === undefined)
      note('upstream', 'is missing, and there is no default')
    if (each.upstream !== undefined && !Object.hasOwn(given.upstreams ?? {}, each.upstream))
      note('upstream', 'is not in `upstreams`')
    if (each.content !== undefined && each.key === 'required') note('content', "is for routes with key: 'optional'")
    if (each.authorize !== undefined && each.replay !== undefined) {
      note('replay', 'says who may see a replay, and so does `authorize`: give one of them')
    }
    if (each.content?.scope === 'tenant' && each.authorize === undefined && each.replay !== 'trusted') {
      const what = 'lets callers share their contents, while a response is replayed to its first credential alone'
      note('content.scope', `${what}: give \`authorize\` or replay: 'trusted', or leave it out`)
    }
    if (
      each.honoursKeys === true &&
      each.keyFrom !== undefined &&
      'field' in each.keyFrom &&
      each.content !== undefined
    ) {
      note('honoursKeys', 'needs a header to carry the key that is made of a content')
    }
  })
}

/** The configuration as it was given, if nothing is wrong with it; else all that is, in one error. */
export function checkGatewayConfig(given: unknown): GatewayConfig {
  const faults: SettingFault[] = []
  config(given, '', faults)
  if (faults.length === 0 && isFields(given)) crossFaults(given as GatewayConfig, faults)
  refuseFaults('gateway', faults)
  return given as GatewayConfig
}
