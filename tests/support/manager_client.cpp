// A program that was written for the vendor's C++ interface: what it declares is that interface's, in
// its order. It prints what the chips, the version and an attempt to open one of them give.
#include <cstdio>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

struct TfLiteRegistration;

namespace edgetpu {

enum class DeviceType { kApexPci = 0, kApexUsb = 1 };

class EdgeTpuContext;

class EdgeTpuManager {
 public:
  using DeviceOptions = std::unordered_map<std::string, std::string>;
  struct DeviceEnumerationRecord {
    DeviceType type;
    std::string path;
  };
  static EdgeTpuManager* GetSingleton();
  virtual std::unique_ptr<EdgeTpuContext> NewEdgeTpuContext() = 0;
  virtual std::unique_ptr<EdgeTpuContext> NewEdgeTpuContext(DeviceType) = 0;
  virtual std::unique_ptr<EdgeTpuContext> NewEdgeTpuContext(DeviceType, const std::string&) = 0;
  virtual std::unique_ptr<EdgeTpuContext> NewEdgeTpuContext(DeviceType, const std::string&,
                                                            const DeviceOptions&) = 0;
  virtual std::vector<DeviceEnumerationRecord> EnumerateEdgeTpu() const = 0;
  virtual std::shared_ptr<EdgeTpuContext> OpenDevice() = 0;
  virtual std::shared_ptr<EdgeTpuContext> OpenDevice(DeviceType) = 0;
  virtual std::shared_ptr<EdgeTpuContext> OpenDevice(DeviceType, const std::string&) = 0;
  virtual std::shared_ptr<EdgeTpuContext> OpenDevice(DeviceType, const std::string&,
                                                     const DeviceOptions&) = 0;
  virtual std::vector<std::shared_ptr<EdgeTpuContext>> GetOpenedDevices() const = 0;
  virtual int SetVerbosity(int) = 0;
  virtual std::string Version() const = 0;

 protected:
  virtual ~EdgeTpuManager() = default;
};

class EdgeTpuContext {
 public:
  virtual ~EdgeTpuContext();
};
EdgeTpuContext::~EdgeTpuContext() = default;

TfLiteRegistration* RegisterCustomOp();

}  // namespace edgetpu

int main() {
  auto* manager = edgetpu::EdgeTpuManager::GetSingleton();
  for (const auto& each : manager->EnumerateEdgeTpu())
    std::printf("%d %s\n", static_cast<int>(each.type), each.path.c_str());
  std::printf("%s\n", manager->Version().c_str());
  std::printf("verbosity %d %d\n", manager->SetVerbosity(10), manager->SetVerbosity(11));
  std::printf("opened %zu\n", manager->GetOpenedDevices().size());
  auto context = manager->OpenDevice(edgetpu::DeviceType::kApexUsb, "a path of more than 15 bytes",
                                     {{"Performance", "Max"}});
  std::printf("context %d\n", context != nullptr);
  std::printf("old context %d\n", manager->NewEdgeTpuContext() != nullptr);
  std::printf("operator %d\n", edgetpu::RegisterCustomOp() != nullptr);
}
