/** Renders charts/tidings with helm, and reads what came out. */
import { execFile } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { parse, parseAllDocuments } from 'yaml'

const root = join(import.meta.dirname, '../..')

/** The folder of the chart. */
export const chart: string = join(root, 'charts/tidings')

/** Names of the value sets in the folder ci of the chart. */
export const valueSets: readonly string[] = readdirSync(join(chart, 'ci'))
  .map((file) => file.replace(/\.yaml$/, ''))
  .sort()

export const NAMESPACE = 'events'

const helmBinary = join(root, '.cache/helm/helm')
const OUTPUT_BYTES_MAX = 16 * 1024 * 1024

export interface HelmOutput {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

export interface Manifest {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: {
    readonly name: string
    readonly namespace?: string
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
  }
  // biome-ignore lint/suspicious/noExplicitAny: manifests of any kind, as a test reads them.
  readonly [field: string]: any
}

/** Runs helm; rejects only if it cannot be started. */
export function helm(args: readonly string[], input = ''): Promise<HelmOutput> {
  return new Promise((resolve, reject) => {
    const options = { maxBuffer: OUTPUT_BYTES_MAX }
    const child = execFile(helmBinary, args, options, (error, stdout, stderr) => {
      if (error?.code === 'ENOENT') reject(new Error('there is no helm: npm run tools -- helm'))
      else resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr })
    })
    child.stdin?.end(input)
  })
}

/** `helm template` of a value set, with further flags of helm. Fails when helm does. */
export async function render(
  set: string,
  flags: readonly string[] = [],
): Promise<readonly Manifest[]> {
  const values = join(chart, 'ci', `${set}.yaml`)
  const args = ['template', 'tidings', chart, '--namespace', NAMESPACE, '-f', values, ...flags]
  const { code, stdout, stderr } = await helm(args)
  if (code !== 0) throw new Error(`helm template with ${set}: ${stderr}`)
  return manifestsIn(stdout)
}

/** `helm template` of values as YAML. They get an endpoint of etcd, unless they have their own. */
export function template(text: string): Promise<HelmOutput> {
  const values = parse(text)
  const etcd = { endpoints: ['http://etcd:2379'], ...values.etcd }
  return helm(['template', 'tidings', chart, '-f', '-'], JSON.stringify({ ...values, etcd }))
}

/** Standard error of a rendering that must fail. */
export async function refusal(values: string): Promise<string> {
  const { code, stderr } = await template(values)
  if (code === 0) throw new Error('it was rendered')
  return stderr
}

/** The notes that `helm install` prints with these values, as YAML. */
export async function notesOf(values: string): Promise<string> {
  const args = ['install', 'tidings', chart, '--dry-run=client', '--namespace', NAMESPACE]
  const { stdout, stderr } = await helm([...args, '-f', '-'], values)
  const at = stdout.indexOf('\nNOTES:')
  if (at < 0) throw new Error(stderr)
  return stdout.slice(at)
}

/** Reads YAML as Helm and kubectl do, for which an unquoted `on` is a boolean. */
export function manifestsIn(text: string): readonly Manifest[] {
  return parseAllDocuments(text, { version: '1.1' })
    .map((document) => {
      const [error] = document.errors
      if (error !== undefined) throw error
      return document.toJS()
    })
    .filter((value) => value !== null)
}

/** The only object of a kind, or that with this name. */
export function find(manifests: readonly Manifest[], kind: string, name?: string): Manifest {
  const found = manifests.filter(
    (one) => one.kind === kind && (name === undefined || one.metadata.name === name),
  )
  const [first] = found
  if (first === undefined || found.length > 1) {
    throw new Error(`${found.length} objects are a ${kind} ${name ?? ''}`)
  }
  return first
}
