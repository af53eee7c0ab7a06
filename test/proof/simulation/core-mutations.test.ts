import { coreMutants } from './mutants.ts'
import { noticeEach } from './notice.ts'

noticeEach(coreMutants)
