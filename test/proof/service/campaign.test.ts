import { after, before, test } from 'node:test'
import { type Cluster, onEveryPlace, openCluster } from '../../support/service/cluster.ts'
import { type MailServer, startMail } from '../../support/service/messages/mail.ts'
import { type KeyedProvider, startKeyedProvider } from '../../support/service/outreach/keyed-provider.ts'
import { atMail, atWebhook, badMood, campaignThroughKills } from './outreach/campaign-storm.ts'

const LEADS = 30
const KILLS = 1
const PACE = { limit: 10, perMs: 1_000 }
const BOUND_MS = 180_000

onEveryPlace('a campaign', (place) => {
  let provider: KeyedProvider
  let mail: MailServer
  let cluster: Cluster
  before(async () => {
    provider = await startKeyedProvider(badMood({ refuse: 15, lose: 10, hang: 5 }))
    // Each mail is asked about twice: when it is announced, and when it is whole.
    mail = await startMail(() => 0, badMood({ refuse: 15, lose: 10, hang: 5 }))
    const env = {
      ONCEONLY_WEBHOOK_HOSTS: '127.0.0.1',
      ONCEONLY_OUTREACH_WEBHOOK_RATE: '10/second',
      ONCEONLY_SMTP_URL: mail.url,
      ONCEONLY_SMTP_RATE: '10/second',
      ONCEONLY_SEND_TIMEOUT_MS: '2000',
    }
    cluster = await openCluster(place, { processes: 2, env })
  })
  after(async () => {
    await cluster[Symbol.asyncDispose]()
    await provider[Symbol.asyncDispose]()
    await mail[Symbol.asyncDispose]()
  })

  for (const way of ['webhooks', 'mails'] as const) {
    test(`of ${way}, with a killed process and a bad provider, reaches each lead once, within the rate at every moment`, async () => {
      const target = way === 'mails' ? atMail(mail) : atWebhook(provider)
      const figures = await campaignThroughKills(cluster, {
        target,
        leads: LEADS,
        kills: KILLS,
        pace: PACE,
        boundMs: BOUND_MS,
      })
      console.log(`${place}, ${way}: ${JSON.stringify(figures)}`)
    })
  }
})
