import type { Values } from '../commands/argument.ts'
import type { Context } from '../commands/command.ts'
import { commandTable } from '../commands/table.ts'
import { configFile, loadConfig } from './config.ts'
import { print } from './operator.ts'
import type { checklistArguments } from './program-arguments.ts'
import { shownOf } from './text/text.ts'
import { Usage } from './usage.ts'

/** The command of the table without a store: it is about what the configuration declares. */
export async function checklistProgram(values: Values<typeof checklistArguments>): Promise<number> {
  const file = configFile(values.config)
  const { routes } = await loadConfig(file)
  if (!Array.isArray(routes)) throw new Usage(`${file} exports no \`routes\`.`)
  const answer = await commandTable.checklist.read({ routes: () => routes } as unknown as Context, {})
  return print(shownOf('checklist', answer, { now: 0, isPreview: false }), values)
}
