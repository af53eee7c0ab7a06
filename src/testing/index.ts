/** What authors of stores and users of the ledger test with. No test runner is dragged along: yours is injected. */

export type { BrokenStore } from './broken.ts'
export { brokenStores } from './broken.ts'
export type { Case, ConformanceOptions, Subject } from './conformance/kit.ts'
export { conformanceCases, runCase, storeConformance } from './conformance/kit.ts'
export type { Random } from './random.ts'
export { createRandom } from './random.ts'
export type { SimulatedProcess, Simulation, SimulationEnd } from './simulation.ts'
export { createSimulation } from './simulation.ts'
