import { type Encryption, encryptionFromEnv, isOnceError } from 'onceonly'
import { DEFAULT_HOST, DEMO_VARIABLE, demoOf, type Env, isWithoutDemo, UNUSED_DEMO_KEY } from './config-demo.ts'
import { type LimitConfig, limitSettings, whole } from './config-limits.ts'
import { aboutRate, type CallRate, rateOf } from './config-rates.ts'
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
  /** Null: what the stores keep is not encrypted. The other three are parts of it. */
  readonly encryption: Encryption | null
  readonly encryptionKeysFile: string
  readonly encryptionWriteWith: string
  readonly encryptionAllowPlain: string
  readonly encryptionLost: string
  /** Null: this channel is not configured. */
  readonly smtpUrl: string | null
  readonly mailFrom: string
  readonly webhookUrl: string | null
  /** The provider behind it delivers the same key once, so that a lost answer may be asked for by sending again. */
  readonly webhookHonoursKeys: boolean
  readonly twilioUrl: string | null
  /** How often each provider may be called; null for no limit. */
  readonly smtpRate: CallRate | null
  readonly webhookRate: CallRate | null
  readonly twilioRate: CallRate | null
  readonly outreachWebhookRate: CallRate | null
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
  /** Its value is not repeated in an error or a log. */
  readonly isSecret?: true
  /** Answers what is wrong with the text, or the value; the other settings are for what depends on them. */
  read(text: string, env: Env): { readonly value: T } | { readonly wrong: string }
}

/** Longer than any provider takes, shorter than a client waits. */
const SEND_TIMEOUT_MS_MOST = 120_000
/** Minutes are enough for the largest attachments on the slowest line. */
const REQUEST_TIMEOUT_MS_MOST = 600_000
const TIMEOUT_MS_LEAST = 100

/** Every setting of the server; `--help` and the errors are made from this table, so that neither can forget one. */
const settings: { readonly [Name in keyof Config]: Setting<Config[Name]> } = {
  port: whole('PORT', 4_000, { least: 0, most: 65_535, about: 'where the server listens; 0 takes any free port' }),
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
    isSecret: true,
    about: 'postgres://… for many processes; empty for the embedded store',
    read: (text) =>
      text === '' || /^postgres(ql)?:\/\//.test(text)
        ? { value: text === '' ? null : text }
        : { wrong: 'is not a postgres:// URL' },
  },
  claimsUrl: {
    variable: 'ONCEONLY_CLAIMS',
    fallback: '',
    isSecret: true,
    about: 'redis://… for the keys and locks of messages; empty to keep them in the store',
    read: (text) => urlOf(text, ['redis:', 'rediss:']),
  },
  brokerUrl: {
    variable: 'ONCEONLY_BROKER',
    fallback: '',
    isSecret: true,
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
    ...secret(
      'ONCEONLY_DEMO_KEY',
      'API key of the demo workspace, the only one it has, so that servers on one store share it; generated and kept in the data folder when empty',
    ),
    read: (text, env) => (text !== '' && isWithoutDemo(env) ? { wrong: UNUSED_DEMO_KEY } : readSecret(text)),
  },
  operatorToken: secret(
    'ONCEONLY_OPERATOR_TOKEN',
    'the token of operators, for the admin endpoints and the console; generated and kept in the data folder when empty, and then the console answers this machine only',
  ),
  viewerToken: secret(
    'ONCEONLY_VIEWER_TOKEN',
    'the token of those who may look at the console and the metrics, and change nothing',
  ),
  hookSecret: secret(
    'ONCEONLY_HOOK_SECRET',
    'the secret of POST /hooks/s3, sent along or signed with; generated and kept in the data folder when empty',
  ),
  testClock: flag('ONCEONLY_TEST_CLOCK', ['0', '1'], "1 lets an operator move the store's time, for tests"),
  encryption: {
    variable: 'ONCEONLY_ENCRYPTION_KEYS',
    fallback: '',
    isSecret: true,
    about: 'ID=BASE64,… with 32 random bytes each encrypts what the stores and the uploads keep; empty for plain data',
    read: (_text, env) => encryptionOf(env),
  },
  encryptionKeysFile: part('ONCEONLY_ENCRYPTION_KEYS_FILE', 'a file with one ID=BASE64 on each line, instead'),
  encryptionWriteWith: part(
    'ONCEONLY_ENCRYPTION_WRITE_WITH',
    'the id of the key that writes; may be left out with one key',
  ),
  encryptionAllowPlain: part(
    'ONCEONLY_ENCRYPTION_ALLOW_PLAIN',
    'yes while data from before encryption is left: until `onceonly rekey` has encrypted it',
  ),
  encryptionLost: part('ONCEONLY_ENCRYPTION_LOST', 'ids of keys that are lost for good, with commas between'),
  smtpUrl: {
    variable: 'ONCEONLY_SMTP_URL',
    fallback: '',
    isSecret: true,
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
    isSecret: true,
    about: 'http(s)://… delivers messages to a provider of your own, with the effect key as Idempotency-Key',
    read: httpUrlOf,
  },
  webhookHonoursKeys: flag(
    'ONCEONLY_MESSAGE_WEBHOOK_HONOURS_KEYS',
    ['no', 'yes'],
    'yes, when that provider delivers the same Idempotency-Key once: a lost answer is then asked for by sending again',
  ),
  twilioUrl: {
    variable: 'ONCEONLY_TWILIO_URL',
    fallback: '',
    isSecret: true,
    about: 'https://SID:TOKEN@…/Messages.json?From=%2B1… delivers text messages in the manner of Twilio',
    read: httpUrlOf,
  },
  smtpRate: rate('ONCEONLY_SMTP_RATE', 'the mail server'),
  webhookRate: rate('ONCEONLY_MESSAGE_WEBHOOK_RATE', 'the provider of your own'),
  twilioRate: rate('ONCEONLY_TWILIO_RATE', 'the provider of text messages'),
  outreachWebhookRate: rate('ONCEONLY_OUTREACH_WEBHOOK_RATE', 'each host of webhook steps, for each workspace,'),
  webhookHosts: {
    variable: 'ONCEONLY_WEBHOOK_HOSTS',
    fallback: '',
    about:
      'hosts of your own network that webhook steps of sequences may reach, as HOST or HOST:PORT with commas between; without them only public addresses',
    read: (text) => hostsOf(text),
  },
  sendTimeoutMs: whole('ONCEONLY_SEND_TIMEOUT_MS', 15_000, {
    least: TIMEOUT_MS_LEAST,
    most: SEND_TIMEOUT_MS_MOST,
    about: 'how long a provider may take; past it the outcome of a message is unknown',
  }),
  requestTimeoutMs: whole('ONCEONLY_REQUEST_TIMEOUT_MS', 30_000, {
    least: TIMEOUT_MS_LEAST,
    most: REQUEST_TIMEOUT_MS_MOST,
    about:
      'how long a client may take to send its request, or pause while it uploads a file; past it the answer is 408',
  }),
  guard: choice(
    'ONCEONLY_GUARD',
    ['on', 'off'],
    'off: identical messages without a key are all sent; only an Idempotency-Key protects',
  ),
  guardFails: choice(
    'ONCEONLY_GUARD_FAILS',
    ['open', 'closed'],
    'open: a message is sent unguarded when its lock cannot be asked; closed: it is refused',
  ),
  logLevel: {
    ...choice('ONCEONLY_LOG_LEVEL', logLevels, `how much is logged: ${logLevels.join(', ')}`),
    fallback: 'info',
  },
  ...limitSettings,
}

function rate(variable: string, provider: string): Setting<CallRate | null> {
  return { variable, fallback: '', about: aboutRate(provider), read: rateOf }
}

/** Read together with the keys. */
function part(variable: string, about: string): Setting<string> {
  return { variable, fallback: '', about, read: (text) => ({ value: text }) }
}

function encryptionOf(env: Env): { value: Encryption | null } | { wrong: string } {
  try {
    return { value: encryptionFromEnv(env) ?? null }
  } catch (error) {
    if (!isOnceError(error)) throw error
    return { wrong: `is refused: ${error.message}` }
  }
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

/** One of a few words; the first is the default. */
function choice<const V extends string>(variable: string, values: readonly V[], about: string): Setting<V> {
  return {
    variable,
    fallback: values[0] ?? '',
    about,
    read(text) {
      const value = values.find((each) => each === text)
      return value === undefined ? { wrong: `is none of ${values.join(', ')}` } : { value }
    },
  }
}

/** The first word is false and the default, the second is true. */
function flag(variable: string, words: readonly [string, string], about: string): Setting<boolean> {
  const { read, ...setting } = choice(variable, words, about)
  return {
    ...setting,
    read(text, env) {
      const result = read(text, env)
      return 'wrong' in result ? result : { value: result.value === words[1] }
    },
  }
}

function secret(variable: string, about: string): Setting<string | null> {
  return { variable, fallback: '', about, isSecret: true, read: readSecret }
}

const SECRET_CHARS_LEAST = 8

function readSecret(text: string): { value: string | null } | { wrong: string } {
  if (text === '') return { value: null }
  if (!/^[\x21-\x7e]+$/.test(text)) return { wrong: 'holds characters that no header can carry' }
  return text.length < SECRET_CHARS_LEAST
    ? { wrong: `is shorter than ${SECRET_CHARS_LEAST} characters` }
    : { value: text }
}

/** A setting that stops the start; the message is the one line that its reader gets. */
export class BadSetting extends Error {
  constructor(name: keyof Config, text: string, wrong: string) {
    const { variable, isSecret }: Pick<Setting<unknown>, 'variable' | 'isSecret'> = settings[name]
    super(`${variable}: ${isSecret === true ? 'the value' : JSON.stringify(text)} ${wrong}`)
    this.name = 'BadSetting'
  }
}

/** An empty variable counts as unset, because many deployments cannot remove one. */
export function readConfig(env: Env): Config {
  const read = <Name extends keyof Config>(name: Name): Config[Name] => {
    const setting: Setting<Config[Name]> = settings[name]
    const text = env[setting.variable] || setting.fallback
    const result = setting.read(text, env)
    if ('wrong' in result) throw new BadSetting(name, text, result.wrong)
    return result.value
  }
  const names = Object.keys(settings) as (keyof Config)[]
  // The table has a setting of the right type for every name.
  return Object.fromEntries(names.map((name) => [name, read(name)])) as unknown as Config
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
