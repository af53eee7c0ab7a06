import { join } from 'node:path'
import { BadSetting, type Config } from '../../config.ts'
import { createFileCipher } from './file-cipher.ts'
import { openFolder } from './folder.ts'
import type { Storage } from './storage.ts'

/** The storage that the settings name. */
export async function openUploads({
  uploads,
  dataFolder,
  encryption,
}: Pick<Config, 'uploads' | 'dataFolder' | 'encryption'>): Promise<Storage> {
  const cipher = createFileCipher(encryption)
  const own = join(dataFolder, 'uploads')
  switch (uploads.kind) {
    case 'own folder':
      return await openFolder(own, { cipher })
    case 'folder':
      return await openFolder(uploads.path, { cipher })
    case 'bucket': {
      // The SDK is large: only a server that needs it loads it.
      const { createBucketClient, openBucket } = await import('./bucket.ts')
      const client = createBucketClient(process.env)
      // Without one the SDK refuses every request, and no waiting mends that.
      await client.config.region().catch(() => {
        throw new BadSetting('uploads', `s3://${uploads.name}`, 'needs a region; set AWS_REGION')
      })
      return await openBucket({ client, place: uploads, spoolFolder: join(own, 'unfinished') })
    }
  }
}
