export interface Config {
  readonly port: number
  readonly host: string
  readonly dataFolder: string
  /** Null is the embedded store in the data folder. */
  readonly storeUrl: string | null
  /** Null: generated once and kept in the data folder. */
  readonly demoKey: string | null
  /** Null: generated once and kept in the data folder, like the demo key. */
  readonly operatorToken: string | null
  readonly testClock: boolean
}

interface Setting<T> {
  readonly variable: string
  readonly fallback: string
  readonly about: string
  /** Answers what is wrong with the text, or the value. */
  read(text: string): { readonly value: T } | { readonly wrong: string }
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
    fallback: '127.0.0.1',
    about: 'the address that it listens on',
    read: (text) => (/^[\w.:-]+$/.test(text) ? { value: text } : { wrong: 'is not an address or a host name' }),
  },
  dataFolder: {
    variable: 'ONCEONLY_DATA',
    fallback: './data',
    about: 'the folder of the embedded store',
    read: (text) => (text.includes('\0') ? { wrong: 'is not a path' } : { value: text }),
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
  demoKey: {
    variable: 'ONCEONLY_DEMO_KEY',
    fallback: '',
    about: 'API key of the demo workspace; generated and kept in the data folder when empty',
    read: (text) => secret(text),
  },
  operatorToken: {
    variable: 'ONCEONLY_OPERATOR_TOKEN',
    fallback: '',
    about: 'the bearer token of the admin endpoints; generated and kept in the data folder when empty',
    read: (text) => secret(text),
  },
  testClock: {
    variable: 'ONCEONLY_TEST_CLOCK',
    fallback: '0',
    about: "1 lets an operator move the store's time, for tests",
    read: (text) => (text === '0' || text === '1' ? { value: text === '1' } : { wrong: 'is neither 0 nor 1' }),
  },
}

const SECRET_CHARS_LEAST = 8

function secret(text: string): { value: string | null } | { wrong: string } {
  if (text === '') return { value: null }
  if (!/^[\x21-\x7e]+$/.test(text)) return { wrong: 'holds characters that no header can carry' }
  return text.length < SECRET_CHARS_LEAST
    ? { wrong: `is shorter than ${SECRET_CHARS_LEAST} characters` }
    : { value: text }
}

/** A setting that stops the start; the message is the one line that its reader gets. */
export class BadSetting extends Error {
  constructor(name: keyof Config, text: string, wrong: string) {
    // A secret is not repeated in a log.
    const shown =
      name === 'demoKey' || name === 'operatorToken' || name === 'storeUrl' ? 'the value' : JSON.stringify(text)
    super(`${settings[name].variable}: ${shown} ${wrong}`)
    this.name = 'BadSetting'
  }
}

/** An empty variable counts as unset, because many deployments cannot remove one. */
export function readConfig(env: Readonly<Record<string, string | undefined>>): Config {
  return {
    port: read('port'),
    host: read('host'),
    dataFolder: read('dataFolder'),
    storeUrl: read('storeUrl'),
    demoKey: read('demoKey'),
    operatorToken: read('operatorToken'),
    testClock: read('testClock'),
  }

  function read<Name extends keyof Config>(name: Name): Config[Name] {
    const setting: Setting<Config[Name]> = settings[name]
    const text = env[setting.variable] || setting.fallback
    const result = setting.read(text)
    if ('wrong' in result) throw new BadSetting(name, text, result.wrong)
    return result.value
  }
}

export function help(): string {
  const rows = Object.values(settings).map(
    ({ variable, fallback, about }) =>
      `  ${variable.padEnd(24)} ${about} (default: ${fallback === '' ? 'empty' : fallback})`,
  )
  return ['npm start', '', 'The systems built on Onceonly, in one server. Environment variables:', '', ...rows].join(
    '\n',
  )
}
