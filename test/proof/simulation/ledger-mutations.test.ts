import { ledgerMutants } from './mutants.ts'
import { noticeEach } from './notice.ts'

noticeEach(ledgerMutants)
