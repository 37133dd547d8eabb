/**
 * The list of components in CycloneDX's format, from `npm sbom`, which knows the lock file. What
 * would differ from one build of a commit to the next is replaced, and Node, which npm does not know
 * as a part of the program, is added.
 */
import { createHash } from 'node:crypto'
import { type Architecture, pinnedNode } from './node-package.ts'
import { npm } from './npm.ts'
import { commitSeconds, packageJson, root } from './project.ts'
import { pagePackages, type RuntimePackage, runtimePackages } from './runtime-packages.ts'

/** Marks a component that is not installed but built into the scripts and styles of the page. */
const IN_PAGE = { name: 'tidings:built-into', value: 'dist/ui' }

export interface Component {
  readonly 'bom-ref': string
  readonly type: string
  readonly name: string
  readonly version: string
  readonly purl: string
  readonly cpe?: string
  readonly licenses?: readonly object[]
  readonly properties?: readonly { readonly name: string; readonly value: string }[]
}

export interface Sbom {
  serialNumber: string
  metadata: { timestamp: string; tools?: unknown; component: Record<string, unknown> }
  components: Component[]
  dependencies: { ref: string; dependsOn: string[] }[]
}

/** The components of an archive, and `more` for what is added to them in an image. */
export function sbom(architecture: Architecture, more: readonly Component[] = []): string {
  const list: Sbom = JSON.parse(
    npm(['sbom', '--package-lock-only', '--sbom-format=cyclonedx'], root),
  )
  const { name, version } = packageJson()
  keepReleased(list, `${name}@${version}`, architecture)
  // npm names the component after the folder of the checkout.
  Object.assign(list.metadata.component, { type: 'application', name })
  // npm's own version would be the only trace of the machine.
  delete list.metadata.tools
  list.metadata.timestamp = new Date(commitSeconds() * 1000).toISOString()
  const added = [node(), ...more]
  list.components.push(...added)
  const own = list.dependencies.find(({ ref }) => ref === `${name}@${version}`)
  own?.dependsOn.push(...added.map((component) => component['bom-ref']))
  list.serialNumber = ''
  list.serialNumber = `urn:uuid:${uuidOf(JSON.stringify(list))}`
  return `${JSON.stringify(list, undefined, 2)}\n`
}

/**
 * Drops what is for development or for other platforms only. (`npm sbom --omit=dev` also drops packages that both the
 * project needs for development and a package needs at run time, and those of the page.)
 */
function keepReleased(list: Sbom, own: string, architecture: Architecture): void {
  const ofProgram = new Set(runtimePackages(architecture).map(refOf))
  const released = new Set([...ofProgram, ...pagePackages().map(refOf)])
  list.components = list.components
    .filter((component) => released.has(component['bom-ref']))
    .map((component) => ({
      ...component,
      properties: ofProgram.has(component['bom-ref']) ? [] : [IN_PAGE],
    }))
  list.dependencies = list.dependencies
    .filter(({ ref }) => ref === own || released.has(ref))
    .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((on) => released.has(on)) }))
}

function refOf({ name, version }: RuntimePackage): string {
  return `${name}@${version}`
}

function node(): Component {
  const { version } = pinnedNode()
  return {
    'bom-ref': `node@${version}`,
    type: 'platform',
    name: 'node',
    version,
    purl: `pkg:generic/node@${version}`,
    cpe: `cpe:2.3:a:nodejs:node.js:${version}:*:*:*:*:*:*:*`,
    licenses: [{ license: { id: 'MIT' } }],
  }
}

/** A UUID of version 8, "custom": the first bits of a hash. */
function uuidOf(text: string): string {
  const digits = createHash('sha256').update(text).digest('hex')
  const parts = [
    digits.slice(0, 8),
    digits.slice(8, 12),
    `8${digits.slice(13, 16)}`,
    `8${digits.slice(17, 20)}`,
    digits.slice(20, 32),
  ]
  return parts.join('-')
}
