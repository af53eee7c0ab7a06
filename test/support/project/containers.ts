import { DCLinter } from 'dclint'
import { Copy, DockerfileParser, type From, type Instruction, JSONInstruction } from 'dockerfile-ast'
import { validate } from 'dockerfile-utils'
import { parse } from 'yaml'

/** What the tests look at in a compose file; the linter checks all of it against the specification's schema. */
export interface Compose {
  readonly services: Readonly<Record<string, Service>>
  readonly volumes: Readonly<Record<string, null>>
}

interface Service {
  readonly image?: string
  readonly environment?: Readonly<Record<string, string>>
  readonly volumes?: readonly string[]
  readonly ports?: readonly string[]
  readonly restart?: string
  readonly healthcheck?: unknown
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>
}

/** With the values of its anchors in their places. */
export function parseCompose(text: string): Compose {
  return parse(text, { merge: true }) as Compose
}

/** The order in which a reader needs services and their keys is not the linter's; quotes are as in the other files. */
const RULES = {
  'service-keys-order': 0,
  'services-alphabetical-order': 0,
  'top-level-properties-order': 0,
  'require-quotes-in-ports': [2, { quoteType: 'double' }],
}

/** Its own types do not resolve under ESM. */
interface Said {
  readonly line: number
  readonly rule: string
  readonly message: string
}

/** What is wrong with a compose file: its schema, the rules of the linter, and names that it uses and does not have. */
export function composeFaults(path: string, text: string): readonly string[] {
  const linter = new DCLinter({ rules: RULES, quiet: false, debug: false, exclude: [] })
  const results = linter.lintFiles([path], false) as readonly { readonly messages: readonly Said[] }[]
  const said = results.flatMap(({ messages }) => messages)
  const faults = said.map(({ line, rule, message }) => `${line}: ${rule}: ${message}`)
  // Of a file that is not valid, nothing more can be said.
  return said.some(({ rule }) => rule === 'invalid-schema') ? faults : [...faults, ...danglingNames(parseCompose(text))]
}

function danglingNames({ services, volumes }: Compose): readonly string[] {
  return Object.entries(services).flatMap(([name, { volumes: mounts = [], depends_on: needs = {} }]) => [
    ...mounts
      .map((mount) => mount.split(':')[0] ?? '')
      .filter((source) => /^\w/.test(source) && !(source in volumes))
      .map((source) => `${name} mounts the volume ${source}, which is not declared`),
    ...Object.entries(needs).flatMap(([other, { condition }]) => {
      const service = services[other]
      if (service === undefined) return [`${name} depends on ${other}, which is no service`]
      if (condition === 'service_healthy' && service.healthcheck === undefined)
        return [`${name} waits until ${other} is healthy, and ${other} has no healthcheck`]
      if (condition === 'service_completed_successfully' && service.restart !== undefined)
        return [`${name} waits until ${other} has ended, and ${other} is started again`]
      return []
    }),
  ])
}

/** What is wrong with a Dockerfile: its syntax, and what a linter of images warns of. */
export function dockerfileFaults(text: string): readonly string[] {
  const faults = validate(text).map(({ range, message }) => `${range.start.line + 1}: ${message}`)
  const file = DockerfileParser.parse(text)
  const stages = file.getFROMs().map((from) => from.getBuildStage())
  return [
    ...faults,
    ...file.getFROMs().flatMap(imageFaults),
    ...file.getInstructions().flatMap((instruction) => instructionFaults(instruction, stages)),
    ...userFaults(file.getInstructions()),
  ]
}

function imageFaults(from: From): readonly string[] {
  const tag = from.getImageTag()
  return tag === null || tag === 'latest'
    ? [`${from.getImage()} needs a tag that does not move to another release`]
    : []
}

function instructionFaults(instruction: Instruction, stages: readonly (string | null)[]): readonly string[] {
  const line = (instruction.getRange()?.start.line ?? 0) + 1
  const keyword = instruction.getKeyword()
  if (keyword === 'ADD') return [`${line}: ADD may also fetch and unpack; COPY does what is needed`]
  if (keyword === 'CMD' || keyword === 'ENTRYPOINT') {
    // A shell in front does not pass on the signal to stop.
    const isArray = instruction instanceof JSONInstruction && instruction.getOpeningBracket() !== null
    return isArray ? [] : [`${line}: ${keyword} must be a JSON array`]
  }
  const stage = instruction instanceof Copy ? instruction.getFromFlag()?.getValue() : null
  if (stage === null || stage === undefined || stages.includes(stage)) return []
  return [`${line}: ${stage} is no stage`]
}

function userFaults(instructions: readonly Instruction[]): readonly string[] {
  const last = instructions.findLastIndex((instruction) => instruction.getKeyword() === 'FROM')
  const users = instructions.slice(last).filter((instruction) => instruction.getKeyword() === 'USER')
  const user = users.at(-1)?.getArgumentsContent()
  return user === undefined || user === null || /^(?:root|0)\b/.test(user) ? ['The image runs as root'] : []
}
