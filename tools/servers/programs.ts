import { canInstall, install } from './apt.ts'
import { findPrograms } from './server.ts'

/** A program that tests call, and no server: found, installed where we may, or missing with a loud word. */
export interface Program {
  readonly name: string
  /** The variable that names it, where it is not on the path. */
  readonly variable: string
  readonly packages: readonly string[]
  /** Files that must exist while the packages are installed, so that the installation starts and creates nothing. */
  readonly filesWhileInstalling?: Readonly<Record<string, string>>
}

export const promtool: Program = { name: 'promtool', variable: 'ONCEONLY_TEST_PROMTOOL', packages: ['prometheus'] }

/** Not on every user's path. */
const SYSTEM_FOLDERS = ['/usr/sbin']

/** Its path, or null: then everything that needs it is skipped, and under `CI=true` nothing is. */
export async function findProgram(program: Program): Promise<string | null> {
  const { name, variable, packages } = program
  const named = process.env[variable]
  if (named !== undefined && named !== '') return named
  const log = (line: string) => void process.stderr.write(`${line}\n`)
  if (findPrograms([name], SYSTEM_FOLDERS) === undefined && canInstall()) {
    await install([program], log).catch((error: unknown) => log(String(error)))
  }
  const folder = findPrograms([name], SYSTEM_FOLDERS)
  if (folder !== undefined) return `${folder}/${name}`
  const advice = `install it (Debian and Ubuntu: apt-get install ${packages.join(' ')}) or set ${variable}`
  if (process.env['CI'] === 'true') throw new Error(`${name}: not found; ${advice}.`)
  log(`${name}: NOT FOUND, everything that needs it is SKIPPED; ${advice}`)
  return null
}
