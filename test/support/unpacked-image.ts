/**
 * The container image without a container runtime: the root filesystem from its layers, and its
 * command started as a runtime would, by means that every Linux has. Needs root.
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface ImageConfig {
  readonly architecture: string
  readonly config: {
    readonly User: string
    readonly Env: readonly string[]
    readonly Entrypoint: readonly string[]
    readonly Labels: Readonly<Record<string, string>>
    readonly WorkingDir: string
  }
}

interface Descriptor {
  readonly digest: string
  readonly size: number
  readonly annotations?: Readonly<Record<string, string>>
}

/**
 * Mounts what a runtime mounts, makes the rest read-only, and replaces itself with the image's entry
 * point, which becomes process 1 of its own namespace. The folder of `--cert-dir` is mounted where
 * that flag points by default, and the flag is dropped.
 */
const START = `
root=$1 user=$2
shift 2
for arg; do
  shift
  case $arg in
    --cert-dir=*) certs=\${arg#*=} ;;
    *) set -- "$@" "$arg" ;;
  esac
done
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
mount --bind /etc/hosts "$root/etc/hosts"
mount --bind /etc/resolv.conf "$root/etc/resolv.conf"
chown "$user" "$certs"
mount --bind "$certs" "$root/var/run/tidings"
mount -o remount,ro,bind "$root"
exec chroot --userspec="$user" "$root" "$@"
`

export class UnpackedImage implements Disposable {
  readonly config: ImageConfig
  readonly bytes: number
  readonly name: string
  /** The root filesystem. */
  readonly root: string
  readonly #folder: string = mkdtempSync(join(tmpdir(), 'tidings-image-test-'))

  constructor(file: string) {
    const layout = join(this.#folder, 'layout')
    this.root = join(this.#folder, 'root')
    mkdirSync(layout)
    mkdirSync(this.root)
    execFileSync('tar', ['-xf', file, '-C', layout])
    const blob = ({ digest }: Descriptor): string => join(layout, 'blobs', digest.replace(':', '/'))
    const read = (path: string): unknown => JSON.parse(readFileSync(path, 'utf8'))
    const index = read(join(layout, 'index.json')) as { manifests: [Descriptor] }
    const [found] = index.manifests
    const manifest = read(blob(found)) as { config: Descriptor; layers: readonly Descriptor[] }
    this.name = found.annotations?.['org.opencontainers.image.ref.name'] ?? ''
    this.config = read(blob(manifest.config)) as ImageConfig
    this.bytes = manifest.layers.reduce((sum, { size }) => sum + size, manifest.config.size)
    for (const layer of manifest.layers) {
      execFileSync('tar', ['-xzpf', blob(layer), '-C', this.root, '--numeric-owner'])
    }
  }

  /** The command that starts the image, to be followed by its arguments. */
  command(): readonly string[] {
    for (const place of ['proc', 'dev']) mkdirSync(join(this.root, place), { recursive: true })
    for (const file of ['etc/hosts', 'etc/resolv.conf']) {
      execFileSync('touch', [join(this.root, file)])
    }
    const { User, Env, Entrypoint } = this.config.config
    const own = ['unshare', '--mount', '--pid', '--fork', '--kill-child', 'sh', '-ec', START, 'sh']
    return [
      'env',
      '-i',
      ...Env,
      'PATH=/usr/sbin:/usr/bin:/sbin:/bin',
      ...own,
      this.root,
      User,
      ...Entrypoint,
    ]
  }

  [Symbol.dispose](): void {
    rmSync(this.#folder, { recursive: true })
  }
}
