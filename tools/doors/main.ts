import { root } from '../command.ts'
import { examine } from './examine.ts'

const { modules, complaints } = await examine(root)
for (const complaint of complaints) console.error(complaint)
// With an unsupported compiler the tool sees no file at all and is content; we are not.
if (modules === 0) console.error('No module was examined.')
process.exitCode = modules === 0 || complaints.length > 0 ? 1 : 0
