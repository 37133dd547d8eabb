import { DirectoryStore } from './directory-store.ts'
import { isObjectName } from './object-name.ts'
import type { ObjectStore } from './object-store.ts'
import type { Environment } from './s3-client.ts'

/**
 * Opens the store of `--history`, whose value the flags have checked already: `file:///path` or `s3://bucket/prefix`.
 * The client for S3 is loaded only for a bucket.
 */
export async function openStore(url: string, env: Environment): Promise<ObjectStore> {
  const [, path] = /^file:\/\/(\/.+)$/.exec(url) ?? []
  if (path !== undefined) return new DirectoryStore(path)
  const [, bucket, prefix = ''] = /^s3:\/\/([\w.-]+)(?:\/(.+))?$/.exec(url) ?? []
  if (bucket === undefined || !(prefix === '' || isObjectName(prefix))) {
    // It may contain a password, so the message does not repeat it.
    throw new Error('the URL of a store is file:///path/of/a/directory or s3://bucket/prefix')
  }
  const { S3Store } = await import('./s3-store.ts')
  return new S3Store({ bucket, prefix }, env)
}
