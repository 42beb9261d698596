// Browsers refuse to start a worker from a page that was opened as a file. There, run its script in a hidden frame
// with the same interface, so that the search works without a server.
(() => {
  if (location.protocol !== "file:") return;

  class FrameWorker extends EventTarget {
    constructor(url) {
      super();
      this.onmessage = null;
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      window.addEventListener("message", (event) => {
        if (event.source !== inside) return;
        this.onmessage?.(event);
        this.dispatchEvent(new MessageEvent("message", { data: event.data }));
      });
      this.loaded = new Promise((done) => this.frame.addEventListener("load", done));
      inside.document.open();
      inside.document.write(`<!doctype html><body><script>
        postMessage = (data) => parent.postMessage(data, "*");
        importScripts = (...urls) => urls.reduce((before, url) => before.then(() => new Promise((done) => {
          const script = document.createElement("script");
          script.src = url;
          script.onload = done;
          document.body.append(script);
        })), Promise.resolve());
      </script><script src="${url}"></script></body>`);
      inside.document.close();
    }

    postMessage(data) {
      this.loaded.then(() => {
        this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }));
      });
    }

    terminate() {
      this.frame.remove();
    }
  }

  window.Worker = FrameWorker;
})();
