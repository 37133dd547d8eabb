/**
 * The client of the SDK, with bounds. Credentials, region and endpoint come from where the tools of AWS take them:
 * the environment, the files of AWS, the service account, or the machine.
 */
import { type Readable, Transform } from 'node:stream'
import { S3Client, type S3ClientConfig } from '@aws-sdk/client-s3'
import type { S3Timeouts } from './s3-deadline.ts'

/** A region that every store other than that of AWS accepts in signatures. */
const OTHER_REGION = 'us-east-1'
const SOCKETS_MAX = 64
/** A page of a list with 1,000 names of the greatest length is below 2 MiB. */
const REPLY_BYTES_MAX = 8 * 1024 * 1024

/** What of the environment this code reads itself; the SDK reads more. */
export type Environment = Readonly<Record<string, string | undefined>>

/** Without a logger, the SDK would write to the console. */
const SILENT = { trace() {}, debug() {}, info() {}, warn() {}, error() {} }

export function createS3Client(env: Environment, timeouts: S3Timeouts): S3Client {
  const client = new S3Client({
    ...regionAndAddress(env),
    // Retries are ours, since those of the SDK neither repeat a put of a file nor resume a download.
    maxAttempts: 1,
    // MinIO, Ceph and Google's S3 do not accept the checksums that the SDK would add behind the body.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestHandler: {
      connectionTimeout: timeouts.connectMs,
      socketTimeout: timeouts.idleMs,
      httpAgent: { maxSockets: SOCKETS_MAX },
      httpsAgent: { maxSockets: SOCKETS_MAX },
    },
    userAgentAppId: 'tidings',
    logger: SILENT,
  })
  // The SDK reads replies of any length into memory; only the content of an object is streamed.
  client.middlewareStack.add(
    (next, { commandName }) =>
      async (args) => {
        const result = await next(args)
        const reply = result.response as { readonly statusCode: number; body: Readable }
        const isContent = commandName === 'GetObjectCommand' && reply.statusCode < 300
        if (!isContent) reply.body = bounded(reply.body)
        return result
      },
    { step: 'deserialize', priority: 'low', name: 'boundReplies' },
  )
  return client
}

function regionAndAddress(env: Environment): S3ClientConfig {
  const region = env['AWS_REGION'] || env['AWS_DEFAULT_REGION']
  const endpoint = endpointIn(env)
  if (endpoint === undefined) return region === undefined ? {} : { region }
  return {
    region: region ?? (async () => (await configuredRegion()) ?? OTHER_REGION),
    // Stores of one's own rarely have a host name for each bucket.
    forcePathStyle: true,
  }
}

/** The SDK reads the same variables; here they are checked, so that the message names the variable. */
function endpointIn(env: Environment): string | undefined {
  for (const variable of ['AWS_ENDPOINT_URL_S3', 'AWS_ENDPOINT_URL']) {
    const text = env[variable]
    if (text === undefined || text === '') continue
    const protocol = URL.canParse(text) ? new URL(text).protocol : ''
    if (protocol === 'http:' || protocol === 'https:') return text
    throw new Error(`${variable} is not a URL that begins with https:// or http://`)
  }
  return undefined
}

/** Of the profile in the files of AWS; only the SDK knows how to read them. */
async function configuredRegion(): Promise<string | undefined> {
  try {
    return await new S3Client({ logger: SILENT }).config.region()
  } catch {
    // The SDK throws if there is none.
    return undefined
  }
}

function bounded(body: Readable): Readable {
  let bytes = 0
  const limit = new Transform({
    transform(piece: Buffer, _encoding, done) {
      bytes += piece.length
      if (bytes <= REPLY_BYTES_MAX) done(null, piece)
      else done(new Error(`the response is longer than ${REPLY_BYTES_MAX} bytes`))
    },
  })
  body.on('error', (error) => limit.destroy(error))
  limit.on('close', () => body.destroy())
  return body.pipe(limit)
}
