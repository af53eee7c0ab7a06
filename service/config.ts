export interface Config {
  readonly port: number
  readonly host: string
  readonly dataFolder: string
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
}

/** A setting that stops the start; the message is the one line that its reader gets. */
export class BadSetting extends Error {
  constructor(name: keyof Config, text: string, wrong: string) {
    super(`${settings[name].variable}: ${JSON.stringify(text)} ${wrong}`)
    this.name = 'BadSetting'
  }
}

/** An empty variable counts as unset, because many deployments cannot remove one. */
export function readConfig(env: Readonly<Record<string, string | undefined>>): Config {
  return { port: read('port'), host: read('host'), dataFolder: read('dataFolder') }

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
    ({ variable, fallback, about }) => `  ${variable.padEnd(14)} ${about} (default: ${fallback})`,
  )
  return ['npm start', '', 'The systems built on Onceonly, in one server. Environment variables:', '', ...rows].join(
    '\n',
  )
}
