/** Stylesheets are bundled by esbuild; importing them yields no value. */
declare module '*.css'
