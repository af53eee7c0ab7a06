import type { Values } from '../commands/argument.ts'
import { type Common, print, withStore } from './operator.ts'
import type { doctorArguments } from './program-arguments.ts'
import { serverFindings } from './server-findings.ts'
import { shownOf } from './text/text.ts'

/** The findings of the store, and of a running server where one is named. */
export async function doctorProgram(values: Values<typeof doctorArguments> & Common): Promise<number> {
  return await withStore(values, async ({ admin, commands, caller }) => {
    const { findings: own } = await commands.run('doctor', {}, caller)
    const { server } = values
    const more = server === undefined ? [] : await serverFindings(server, process.env['ONCEONLY_OPERATOR_TOKEN'])
    const findings = [...own, ...more.filter(({ name }) => !own.some((each) => each.name === name))]
    return print(shownOf('doctor', { findings }, { now: await admin.now(), isPreview: false }), values)
  })
}
