//! Reads a configuration file; the hub can be made with one that is accepted, and a refusal names
//! the file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use motet_server::config::Config;

fuzz_target!(|text: &str| {
    match Config::parse("motet.toml", text) {
        Ok(config) => {
            let _ = (config.hub_options(), config.broker_options());
        }
        Err(error) => assert!(error.to_string().contains("motet.toml"), "{error}"),
    }
});
