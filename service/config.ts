import { DEFAULT_HOST, DEMO_VARIABLE, demoOf, type Env, isWithoutDemo, UNUSED_DEMO_KEY } from './config-demo.ts'
import { type LimitConfig, limitSettings } from './config-limits.ts'
import { complaintAboutPort } from './http/blocked-ports.ts'
import { type LogLevel, logLevels } from './logs-level.ts'

export interface Config extends LimitConfig {
  readonly port: number
  readonly host: string
  readonly dataFolder: string
  readonly uploads: UploadsPlace
  /** Null is the embedded store in the data folder. */
  readonly storeUrl: string | null
  /** Null: claims are in the store, like everything else. */
  readonly claimsUrl: string | null
  /** Null is the bus inside the store. */
  readonly brokerUrl: string | null
  /** A workspace to try things with, whose key this machine can read, and switches that break its network. */
  readonly demo: boolean
  /** Null: generated once and kept in the data folder. */
  readonly demoKey: string | null
  /** Null: generated once and kept in the data folder, like the demo key. */
  readonly operatorToken: string | null
  /** Null: only operators may look at the console and at the metrics. */
  readonly viewerToken: string | null
  /** Null: generated once and kept in the data folder, like the demo key. */
  readonly hookSecret: string | null
  readonly testClock: boolean
  /** Null: this channel is not configured. */
  readonly smtpUrl: string | null
  readonly mailFrom: string
  readonly webhookUrl: string | null
  /** The provider behind it delivers the same key once, so that a lost answer may be asked for by sending again. */
  readonly webhookHonoursKeys: boolean
  readonly twilioUrl: string | null
  /** Hosts that webhook steps may reach although they are not public. */
  readonly webhookHosts: readonly string[]
  readonly sendTimeoutMs: number
  readonly requestTimeoutMs: number
  readonly guard: 'on' | 'off'
  readonly guardFails: 'open' | 'closed'
  readonly logLevel: LogLevel
}

/** Where uploaded files are kept. */
export type UploadsPlace =
  /** In the data folder. */
  | { readonly kind: 'own folder' }
  | { readonly kind: 'folder'; readonly path: string }
  /** Without a slash at either end of the prefix; empty for the whole bucket. */
  | { readonly kind: 'bucket'; readonly name: string; readonly prefix: string }

interface Setting<T> {
  readonly variable: string
  readonly fallback: string
  readonly about: string
  /** Answers what is wrong with the text, or the value; the other settings are for what depends on them. */
  read(text: string, env: Env): { readonly value: T } | { readonly wrong: string }
}

/** Every setting of the server; `--help` and the errors are made from this table, so that neither can forget one. */
const settings: { readonly [Name in keyof Config]: Setting<Config[Name]> } = {
  port: {
    variable: 'PORT',
    fallback: '4000',
    about: 'where the server listens; 0 takes any free port',
    read: (text) =>
      /^\d{1,5}$/.test(text) && Number(text) <= 65_535
        ? { value: Number(text) }
        : { wrong: 'is not a whole number from 0 to 65535' },
  },
  host: {
    variable: 'HOST',
    fallback: DEFAULT_HOST,
    about: 'the address that it listens on',
    read: (text) => (/^[\w.:-]+$/.test(text) ? { value: text } : { wrong: 'is not an address or a host name' }),
  },
  dataFolder: {
    variable: 'ONCEONLY_DATA',
    fallback: './data',
    about:
      'the folder of the embedded store, of generated secrets and, unless ONCEONLY_UPLOADS is set, of uploaded files',
    read: (text) => (text.includes('\0') ? { wrong: 'is not a path' } : { value: text }),
  },
  uploads: {
    variable: 'ONCEONLY_UPLOADS',
    fallback: '',
    about:
      'where uploaded files are kept: a folder, or s3://BUCKET/PREFIX with AWS_REGION, AWS_ENDPOINT_URL_S3 and the credentials of the AWS SDK; servers on one store share it; empty for the data folder',
    read: (text) => uploadsOf(text),
  },
  storeUrl: {
    variable: 'ONCEONLY_STORE',
    fallback: '',
    about: 'postgres://… for many processes; empty for the embedded store',
    read: (text) =>
      text === '' || /^postgres(ql)?:\/\//.test(text)
        ? { value: text === '' ? null : text }
        : { wrong: 'is not a postgres:// URL' },
  },
  claimsUrl: {
    variable: 'ONCEONLY_CLAIMS',
    fallback: '',
    about: 'redis://… for the keys and locks of messages; empty to keep them in the store',
    read: (text) => urlOf(text, ['redis:', 'rediss:']),
  },
  brokerUrl: {
    variable: 'ONCEONLY_BROKER',
    fallback: '',
    about: 'amqp://… or nats://…, with ?namespace=… where systems share a broker; empty for the bus inside the store',
    read: (text) => brokerOf(text),
  },
  demo: {
    variable: DEMO_VARIABLE,
    fallback: 'auto',
    about:
      'on or off: a demo workspace whose API key only this machine can read; auto is on, unless HOST is public or NODE_ENV is production',
    read: (text, env) => demoOf(text, env),
  },
  demoKey: {
    variable: 'ONCEONLY_DEMO_KEY',
    fallback: '',
    about:
      'API key of the demo workspace, the only one it has, so that servers on one store share it; generated and kept in the data folder when empty',
    read: (text, env) => (text !== '' && isWithoutDemo(env) ? { wrong: UNUSED_DEMO_KEY } : secret(text)),
  },
  operatorToken: {
    variable: 'ONCEONLY_OPERATOR_TOKEN',
    fallback: '',
    about:
      'the token of operators, for the admin endpoints and the console; generated and kept in the data folder when empty, and then the console answers this machine only',
    read: (text) => secret(text),
  },
  viewerToken: {
    variable: 'ONCEONLY_VIEWER_TOKEN',
    fallback: '',
    about: 'the token of those who may look at the console and the metrics, and change nothing',
    read: (text) => secret(text),
  },
  hookSecret: {
    variable: 'ONCEONLY_HOOK_SECRET',
    fallback: '',
    about: 'the secret of POST /hooks/s3, sent along or signed with; generated and kept in the data folder when empty',
    read: (text) => secret(text),
  },
  testClock: {
    variable: 'ONCEONLY_TEST_CLOCK',
    fallback: '0',
    about: "1 lets an operator move the store's time, for tests",
    read: (text) => (text === '0' || text === '1' ? { value: text === '1' } : { wrong: 'is neither 0 nor 1' }),
  },
  smtpUrl: {
    variable: 'ONCEONLY_SMTP_URL',
    fallback: '',
    about: 'smtp://… or smtps://… delivers messages by e-mail; empty for the local mailbox',
    read: (text) => urlOf(text, ['smtp:', 'smtps:']),
  },
  mailFrom: {
    variable: 'ONCEONLY_MAIL_FROM',
    fallback: 'Onceonly <onceonly@localhost>',
    about: 'the sender of these e-mails',
    read: (text) =>
      /^[^<>\r\n]*<[^<>\s@]+@[^<>\s@]+>$|^[^<>\s@]+@[^<>\s@]+$/.test(text)
        ? { value: text }
        : { wrong: 'is not an e-mail address' },
  },
  webhookUrl: {
    variable: 'ONCEONLY_MESSAGE_WEBHOOK_URL',
    fallback: '',
    about: 'http(s)://… delivers messages to a provider of your own, with the effect key as Idempotency-Key',
    read: httpUrlOf,
  },
  webhookHonoursKeys: {
    variable: 'ONCEONLY_MESSAGE_WEBHOOK_HONOURS_KEYS',
    fallback: 'no',
    about:
      'yes, when that provider delivers the same Idempotency-Key once: a lost answer is then asked for by sending again',
    read: (text) => (text === 'yes' || text === 'no' ? { value: text === 'yes' } : { wrong: 'is neither yes nor no' }),
  },
  twilioUrl: {
    variable: 'ONCEONLY_TWILIO_URL',
    fallback: '',
    about: 'https://SID:TOKEN@…/Messages.json?From=%2B1… delivers text messages in the manner of Twilio',
    read: httpUrlOf,
  },
  webhookHosts: {
    variable: 'ONCEONLY_WEBHOOK_HOSTS',
    fallback: '',
    about:
      'hosts of your own network that webhook steps of sequences may reach, as HOST or HOST:PORT with commas between; without them only public addresses',
    read: (text) => hostsOf(text),
  },
  sendTimeoutMs: {
    variable: 'ONCEONLY_SEND_TIMEOUT_MS',
    fallback: '15000',
    about: 'how long a provider may take; past it the outcome of a message is unknown',
    read: (text) => millisecondsOf(text, SEND_TIMEOUT_MS_MOST),
  },
  requestTimeoutMs: {
    variable: 'ONCEONLY_REQUEST_TIMEOUT_MS',
    fallback: '30000',
    about:
      'how long a client may take to send its request, or pause while it uploads a file; past it the answer is 408',
    read: (text) => millisecondsOf(text, REQUEST_TIMEOUT_MS_MOST),
  },
  guard: {
    variable: 'ONCEONLY_GUARD',
    fallback: 'on',
    about: 'off: identical messages without a key are all sent; only an Idempotency-Key protects',
    read: (text) => (text === 'on' || text === 'off' ? { value: text } : { wrong: 'is neither on nor off' }),
  },
  guardFails: {
    variable: 'ONCEONLY_GUARD_FAILS',
    fallback: 'open',
    about: 'open: a message is sent unguarded when its lock cannot be asked; closed: it is refused',
    read: (text) => (text === 'open' || text === 'closed' ? { value: text } : { wrong: 'is neither open nor closed' }),
  },
  logLevel: {
    variable: 'ONCEONLY_LOG_LEVEL',
    fallback: 'info',
    about: `how much is logged: ${logLevels.join(', ')}`,
    read: (text) => {
      const value = logLevels.find((level) => level === text)
      return value === undefined ? { wrong: `is none of ${logLevels.join(', ')}` } : { value }
    },
  },
  ...limitSettings,
}

/** Longer than any provider takes, shorter than a client waits. */
const SEND_TIMEOUT_MS_MOST = 120_000
/** Minutes are enough for the largest attachments on the slowest line. */
const REQUEST_TIMEOUT_MS_MOST = 600_000
const TIMEOUT_MS_LEAST = 100

function millisecondsOf(text: string, most: number): { value: number } | { wrong: string } {
  const value = /^\d{1,6}$/.test(text) ? Number(text) : -1
  return value >= TIMEOUT_MS_LEAST && value <= most
    ? { value }
    : { wrong: `is not a whole number from ${TIMEOUT_MS_LEAST} to ${most}` }
}

function urlOf(text: string, protocols: readonly string[]): { value: string | null } | { wrong: string } {
  if (text === '') return { value: null }
  const protocol = URL.parse(text)?.protocol
  return protocol !== undefined && protocols.includes(protocol)
    ? { value: text }
    : { wrong: `is not a URL that starts with ${protocols.join('// or ')}//` }
}

/** Of a service that is called with `fetch`. */
function httpUrlOf(text: string): { value: string | null } | { wrong: string } {
  const read = urlOf(text, ['http:', 'https:'])
  const wrong = 'wrong' in read || read.value === null ? null : complaintAboutPort(new URL(read.value))
  return wrong === null ? read : { wrong }
}

const NAMESPACE = /^[\w-]{1,64}$/

/** A broker that is away is waited for; what no waiting mends stops the start. */
function brokerOf(text: string): { value: string | null } | { wrong: string } {
  const read = urlOf(text, ['amqp:', 'amqps:', 'nats:', 'tls:'])
  if ('wrong' in read || read.value === null) return read
  const { hostname, searchParams } = new URL(read.value)
  if (hostname === '') return { wrong: 'names no host' }
  return NAMESPACE.test(searchParams.get('namespace') ?? 'onceonly')
    ? read
    : { wrong: 'has a namespace that is not 1 to 64 letters, digits, dashes or underscores' }
}

const BUCKET_NAME = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/
/** With an import and a file behind it a key has room in the 1 024 bytes that S3 allows. */
const BUCKET_PREFIX = /^[\w!.*'()-]+(?:\/[\w!.*'()-]+)*$/
const BUCKET_PREFIX_CHARS_MOST = 256

function uploadsOf(text: string): { value: UploadsPlace } | { wrong: string } {
  if (text === '') return { value: { kind: 'own folder' } }
  if (text.includes('\0')) return { wrong: 'is not a path' }
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(text)) return { value: { kind: 'folder', path: text } }
  const [, name = '', rest = ''] = /^s3:\/\/([^/]*)(.*)$/s.exec(text) ?? []
  if (!BUCKET_NAME.test(name)) return { wrong: 'is neither a folder nor s3://BUCKET/PREFIX' }
  const prefix = rest.replace(/^\//, '').replace(/\/$/, '')
  return prefix === '' || (BUCKET_PREFIX.test(prefix) && prefix.length <= BUCKET_PREFIX_CHARS_MOST)
    ? { value: { kind: 'bucket', name, prefix } }
    : { wrong: `has a prefix that is not 1 to ${BUCKET_PREFIX_CHARS_MOST} characters A-Z a-z 0-9 _ ! . * ' ( ) - /` }
}

function hostsOf(text: string): { value: readonly string[] } | { wrong: string } {
  const hosts = text.split(',').map((each) => each.trim().toLowerCase())
  if (text.trim() === '') return { value: [] }
  const odd = hosts.find((host) => URL.parse(`http://${host}/`)?.host !== host.replace(/:80$/, ''))
  return odd === undefined ? { value: hosts } : { wrong: `names ${JSON.stringify(odd)}, which is no HOST or HOST:PORT` }
}

const SECRET_CHARS_LEAST = 8

function secret(text: string): { value: string | null } | { wrong: string } {
  if (text === '') return { value: null }
  if (!/^[\x21-\x7e]+$/.test(text)) return { wrong: 'holds characters that no header can carry' }
  return text.length < SECRET_CHARS_LEAST
    ? { wrong: `is shorter than ${SECRET_CHARS_LEAST} characters` }
    : { value: text }
}

const secrets = new Set<keyof Config>([
  'demoKey',
  'operatorToken',
  'viewerToken',
  'hookSecret',
  'brokerUrl',
  'storeUrl',
  'claimsUrl',
  'smtpUrl',
  'twilioUrl',
  'webhookUrl',
])

/** A setting that stops the start; the message is the one line that its reader gets. */
export class BadSetting extends Error {
  constructor(name: keyof Config, text: string, wrong: string) {
    // A secret is not repeated in a log.
    const shown = secrets.has(name) ? 'the value' : JSON.stringify(text)
    super(`${settings[name].variable}: ${shown} ${wrong}`)
    this.name = 'BadSetting'
  }
}

/** An empty variable counts as unset, because many deployments cannot remove one. */
export function readConfig(env: Env): Config {
  return {
    port: read('port'),
    host: read('host'),
    dataFolder: read('dataFolder'),
    uploads: read('uploads'),
    storeUrl: read('storeUrl'),
    claimsUrl: read('claimsUrl'),
    brokerUrl: read('brokerUrl'),
    demo: read('demo'),
    demoKey: read('demoKey'),
    operatorToken: read('operatorToken'),
    viewerToken: read('viewerToken'),
    hookSecret: read('hookSecret'),
    testClock: read('testClock'),
    smtpUrl: read('smtpUrl'),
    mailFrom: read('mailFrom'),
    webhookUrl: read('webhookUrl'),
    webhookHonoursKeys: read('webhookHonoursKeys'),
    twilioUrl: read('twilioUrl'),
    webhookHosts: read('webhookHosts'),
    sendTimeoutMs: read('sendTimeoutMs'),
    requestTimeoutMs: read('requestTimeoutMs'),
    guard: read('guard'),
    guardFails: read('guardFails'),
    logLevel: read('logLevel'),
    quotaMessages: read('quotaMessages'),
    quotaMessageBytes: read('quotaMessageBytes'),
    quotaImports: read('quotaImports'),
    quotaUploadBytes: read('quotaUploadBytes'),
    quotaUploads: read('quotaUploads'),
    quotaProjectBytes: read('quotaProjectBytes'),
    quotaSequences: read('quotaSequences'),
    quotaRuns: read('quotaRuns'),
    quotaRooms: read('quotaRooms'),
    quotaClients: read('quotaClients'),
    quotaConnections: read('quotaConnections'),
    retainMessagesDays: read('retainMessagesDays'),
    retainLeadsDays: read('retainLeadsDays'),
    retainUploadsDays: read('retainUploadsDays'),
    retainImportsDays: read('retainImportsDays'),
    retainChatDays: read('retainChatDays'),
    retainChatMessages: read('retainChatMessages'),
    sweepEveryMs: read('sweepEveryMs'),
  }

  function read<Name extends keyof Config>(name: Name): Config[Name] {
    const setting: Setting<Config[Name]> = settings[name]
    const text = env[setting.variable] || setting.fallback
    const result = setting.read(text, env)
    if ('wrong' in result) throw new BadSetting(name, text, result.wrong)
    return result.value
  }
}

export function help(): string {
  const rows = Object.values(settings).map(
    ({ variable, fallback, about }) =>
      `  ${variable.padEnd(30)} ${about} (default: ${fallback === '' ? 'empty' : fallback})`,
  )
  return ['npm start', '', 'The systems built on Onceonly, in one server. Environment variables:', '', ...rows].join(
    '\n',
  )
}
